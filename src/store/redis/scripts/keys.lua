-- Notes that something may be sealed under a key until a time, and tells all keys that were noted so.
-- KEYS  1 names of keys by their times
-- ARGV  1 name, 2 until when, 3 the time now, 4 milliseconds for which this is kept
redis.call('ZADD', KEYS[1], 'GT', ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return redis.call('ZRANGE', KEYS[1], 0, -1)
