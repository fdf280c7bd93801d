-- Counts an id in a quota if there is room.
-- KEYS  1 quota; ARGV  1 id, 2 limit, 3 milliseconds for which it is kept
-- Returns 1 joined, 2 was in before, 0 full
local time = redis.call('TIME')
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return 2
end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], time[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
