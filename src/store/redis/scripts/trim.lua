-- Drops the events that the trail has from the front of an outbox.
-- KEYS  1 outbox; ARGV  1 the stamp up to which the trail has them, 2 how many to look at
local dropped = 0
for _, event in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[2] - 1)) do
  if string.sub(event, 1, 22) > ARGV[1] then
    break
  end
  dropped = dropped + 1
end
if dropped > 0 then
  redis.call('LTRIM', KEYS[1], dropped, -1)
end
return dropped
