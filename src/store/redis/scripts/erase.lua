-- Removes a record and all that belongs to it in its shard, if it is at the version that is expected.
-- KEYS  as for commit
-- ARGV  1 id, 2 expected version, 3 channel, 4 milliseconds for which events are kept; then the events
-- Returns 1 done, 0 conflict
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[2] then
  return 0
end
redis.call('PUBLISH', ARGV[3], ARGV[1])
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
note(KEYS[5], KEYS[6], ARGV[4], 5)
return 1
