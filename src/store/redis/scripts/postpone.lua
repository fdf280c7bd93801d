-- Lists a record as due at another time, if it is at the version that is expected. It lives no longer for that.
-- KEYS  1 record, 2 due times; ARGV  1 id, 2 version, 3 when it is due
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'due', ARGV[3])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 1
