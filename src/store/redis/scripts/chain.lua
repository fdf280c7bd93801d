-- Appends entries to the trail if it still ends where the caller believes.
-- KEYS  1 the trail's end, 2 a chunk
-- ARGV  1 number of the last entry as believed, 2 its hash afterwards, 3 number afterwards, 4 what the chunk follows, 5
--       milliseconds for which the trail is kept, 6 how many outboxes; then for each its name, the stamp up to which it was
--       drained as believed, and afterwards; then the entries
-- Returns 1 done, 0 the trail has moved on
local count = tonumber(ARGV[6])
local first = 7 + 3 * count
if (redis.call('HGET', KEYS[1], 'number') or '0') ~= ARGV[1] then
  return 0
end
for index = 7, first - 1, 3 do
  if (redis.call('HGET', KEYS[1], ARGV[index]) or '') ~= ARGV[index + 1] then
    return 0
  end
end
-- Until when the part is kept that was written to last: what begins after it says so, and so its removal is noticed.
local before = tonumber(redis.call('HGET', KEYS[1], 'until') or '0')
local time = redis.call('TIME')
local till = string.format('%016.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[5])
redis.call('HSET', KEYS[1], 'number', ARGV[3], 'hash', ARGV[2], 'until', till)
for index = 7, first - 1, 3 do
  redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 2])
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('RPUSH', KEYS[2], ARGV[4] .. string.format('%016.0f', before))
end
for index = first, #ARGV do
  redis.call('RPUSH', KEYS[2], ARGV[index])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return 1
