-- Replaces a record, and all that belongs to it in its shard, if it is at the version that is expected.
-- KEYS  the record, its outcome, the shard's: due times, ids, outbox, outbox clock
-- ARGV  1 id, 2 nonce, 3 expected version ('' for none), 4 milliseconds for which keys are kept,
--       5 when it is due, 6 record, 7 'keep' | 'put' | 'erase', 8 outcome, 9 channel, 10 most events in the outbox,
--       11 milliseconds for which events are kept, 12 when it reserved what lies elsewhere ('' for nothing), 13 for how
--       many milliseconds that holds, 14 how many fields go, 15 how many come; then those that go, those that come, and
--       the events
-- Returns 1 done, 0 conflict, -1 the outbox is full, -2 it reserved too long ago
local found = redis.call('HMGET', KEYS[1], 'version', 'nonces')
local nonces = found[2] or ''
if known(nonces, ARGV[2]) then
  return 1
end
if (found[1] or '') ~= ARGV[3] then
  return 0
end
local going, coming = tonumber(ARGV[14]), tonumber(ARGV[15])
local first_coming = 16 + going
local first_event = first_coming + coming
if #ARGV >= first_event and redis.call('LLEN', KEYS[5]) >= tonumber(ARGV[10]) then
  return -1
end
if ARGV[12] ~= '' then
  local time = redis.call('TIME')
  if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[12]) + tonumber(ARGV[13]) then
    return -2
  end
end

-- First, since it may be forbidden: a script that breaks off keeps what it has written.
redis.call('PUBLISH', ARGV[9], ARGV[1])
local version = string.format('%d', (tonumber(found[1] or '0')) + 1)
for index = 16, first_coming - 1 do
  redis.call('HDEL', KEYS[1], ARGV[index])
end
redis.call('HSET', KEYS[1], 'version', version, 'nonces', with(nonces, ARGV[2]), 'due', ARGV[5], 'record', ARGV[6])
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
-- What is due later than anything usual is kept until after that, and the indexes that name it as long.
local time = redis.call('TIME')
local kept = math.max(tonumber(ARGV[4]), tonumber(ARGV[5]) - time[1] * 1000 + tonumber(ARGV[4]))
kept = string.format('%.0f', kept)
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[4], 0, ARGV[1])
redis.call('PEXPIRE', KEYS[1], kept)
for _, key in ipairs({KEYS[3], KEYS[4]}) do
  redis.call('PEXPIRE', key, kept, 'NX')
  redis.call('PEXPIRE', key, kept, 'GT')
end
note(KEYS[5], KEYS[6], ARGV[11], first_event)
return 1
