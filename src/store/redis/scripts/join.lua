-- Counts an id in a quota if there is room.
-- KEYS  1 quota; ARGV  1 id, 2 limit, 3 milliseconds for which it is kept
-- Returns {1 joined | 2 was in before | 0 full, the time in milliseconds}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  return {2, now}
end
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
  return {0, now}
end
redis.call('ZADD', KEYS[1], time[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, now}
