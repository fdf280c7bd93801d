-- Makes a shard's indexes agree with a record, which is the truth.
-- KEYS  1 record, 2 due times, 3 ids; ARGV  1 id
local due = redis.call('HGET', KEYS[1], 'due')
if due then
  redis.call('ZADD', KEYS[2], due, ARGV[1])
else
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
end
return 1
