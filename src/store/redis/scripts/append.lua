-- Puts events that belong to no record into an outbox.
-- KEYS  1 outbox, 2 outbox clock
-- ARGV  1 milliseconds for which keys are kept, 2 most events in the outbox; then the events
-- Returns 1 done, -1 the outbox is full
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then
  return -1
end
note(KEYS[1], KEYS[2], ARGV[1], 3)
return 1
