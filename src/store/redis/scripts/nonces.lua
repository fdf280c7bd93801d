-- The nonces of the last few changes, newest first: a command that is sent twice is done once.
local function known(nonces, nonce)
  for at = 1, #nonces, 16 do
    if string.sub(nonces, at, at + 15) == nonce then
      return true
    end
  end
  return false
end
local function with(nonces, nonce)
  return nonce .. string.sub(nonces, 1, 112)
end
