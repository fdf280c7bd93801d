-- Does on a key of its own what the other scripts do, so that what the server does not permit is known before it is needed.
-- KEYS  1 probe; ARGV  1 channel, or '' to publish nothing
local key = KEYS[1]
if ARGV[1] ~= '' then
  redis.call('PUBLISH', ARGV[1], '')
end
redis.call('TIME')
redis.call('DEL', key)
redis.call('SET', key, '', 'PX', 60000)
redis.call('GET', key)
redis.call('DEL', key)
redis.call('HSET', key, 'a', '', 'b', '')
redis.call('HGET', key, 'a')
redis.call('HMGET', key, 'a', 'b')
redis.call('HDEL', key, 'a', 'b')
redis.call('ZADD', key, 0, 'a')
redis.call('ZSCORE', key, 'a')
redis.call('ZCARD', key)
redis.call('ZRANGE', key, 0, -1)
redis.call('ZREMRANGEBYSCORE', key, '-inf', -1)
redis.call('ZREM', key, 'a')
redis.call('RPUSH', key, 'a')
redis.call('PEXPIRE', key, 60000)
redis.call('LLEN', key)
redis.call('LRANGE', key, 0, 0)
redis.call('LTRIM', key, 1, 0)
return redis.call('EXISTS', key)
