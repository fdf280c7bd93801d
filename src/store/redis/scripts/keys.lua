-- Notes that something may be sealed under a key until a time, unless another key is noted that the caller does not know.
-- KEYS  1 names of keys by their times
-- ARGV  1 name, 2 until when, 3 the time now, 4 milliseconds for which this is kept; then the names that the caller knows
-- Returns '' done, or the name of a key that the caller does not know
local known = {}
for index = 5, #ARGV do
  known[ARGV[index]] = true
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], '(' .. ARGV[3], '+inf', 'BYSCORE')) do
  if not known[name] then
    return name
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
local kept = string.format('%.0f', math.max(tonumber(ARGV[4]), ARGV[2] - ARGV[3]))
redis.call('PEXPIRE', KEYS[1], kept, 'NX')
redis.call('PEXPIRE', KEYS[1], kept, 'GT')
return ''
