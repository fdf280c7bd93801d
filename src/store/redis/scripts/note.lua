-- Puts the events that begin at ARGV[first] into an outbox, under one stamp that is later than all before it.
local function note(outbox, clock, kept, first)
  if #ARGV < first then
    return
  end
  local time = redis.call('TIME')
  local stamp = time[1] * 1000000 + time[2]
  local last = tonumber(redis.call('GET', clock) or '0')
  if stamp <= last then
    stamp = last + 1
  end
  local written = string.format('%016.0f', stamp)
  redis.call('SET', clock, written, 'PX', kept)
  for index = first, #ARGV do
    redis.call('RPUSH', outbox, written .. ARGV[index])
  end
  redis.call('PEXPIRE', outbox, kept)
end
