-- Replaces a record, and all that belongs to it in its shard, if it is at the version that is expected.
-- KEYS  the record, its outcome, the shard's: due times, ids, outbox, outbox clock
-- ARGV  1 id, 2 nonce, 3 expected version ('' for none), 4 milliseconds for which keys are kept,
--       5 when it is due, 6 record, 7 'keep' | 'put' | 'erase', 8 outcome, 9 channel, 10 most events in the outbox,
--       11 how many fields go, 12 how many fields come; then those that go, those that come, and the events
-- Returns 1 done, 0 conflict, -1 the outbox is full
local found = redis.call('HMGET', KEYS[1], 'version', 'nonce')
if found[2] == ARGV[2] then
  return 1 -- it was sent twice
end
if (found[1] or '') ~= ARGV[3] then
  return 0
end
local going, coming = tonumber(ARGV[11]), tonumber(ARGV[12])
local first_coming = 13 + going
local first_event = first_coming + coming
if #ARGV >= first_event and redis.call('LLEN', KEYS[5]) >= tonumber(ARGV[10]) then
  return -1
end

local version = string.format('%d', (tonumber(found[1] or '0')) + 1)
for index = 13, first_coming - 1 do
  redis.call('HDEL', KEYS[1], ARGV[index])
end
redis.call('HSET', KEYS[1], 'version', version, 'nonce', ARGV[2], 'due', ARGV[5], 'record', ARGV[6])
for index = first_coming, first_event - 1 do
  redis.call('HSET', KEYS[1], ARGV[index], '')
end
if ARGV[7] == 'put' then
  redis.call('SET', KEYS[2], ARGV[8], 'PX', ARGV[4])
elseif ARGV[7] == 'erase' then
  redis.call('DEL', KEYS[2])
else
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[4], 0, ARGV[1])
for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4]}) do
  redis.call('PEXPIRE', key, ARGV[4])
end
note(KEYS[5], KEYS[6], ARGV[4], first_event)
redis.call('PUBLISH', ARGV[9], ARGV[1])
return 1
