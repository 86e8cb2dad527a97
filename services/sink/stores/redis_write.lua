-- Writes a batch, or nothing of it.
--
-- KEYS: the hash of the positions, then the row of each change.
-- ARGV: the number of moves; field, expected and new position of each; then action, order, value and expiry of each
-- change. The order of a removal is the beginning of the orders that it removes. Orders have a fixed width, and sort as
-- texts.
local moves = tonumber(ARGV[1])
local argument = 2
local conflict = {'conflict'}
local is_conflict = false
for move = 1, moves do
  local position = redis.call('HGET', KEYS[1], ARGV[argument]) or '0'
  conflict[move + 1] = position
  is_conflict = is_conflict or position ~= ARGV[argument + 1]
  argument = argument + 3
end
if is_conflict then
  return conflict
end

local first = argument
local orders = {}
local refused = {'refused'}
for row = 2, #KEYS do
  local order = redis.pcall('HGET', KEYS[row], 'order')
  local is_hash = type(order) ~= 'table'
  if not is_hash and ARGV[argument] == 'write' then
    refused[#refused + 1] = row - 2
  end
  orders[KEYS[row]] = is_hash and order
  argument = argument + 4
end
if #refused > 1 then
  return refused
end

argument = first
local changed = 0
for row = 2, #KEYS do
  local key, order, expiry = KEYS[row], ARGV[argument + 1], ARGV[argument + 3]
  local present = orders[key]
  if ARGV[argument] == 'write' then
    if not present or order > present then
      redis.call('HSET', key, 'value', ARGV[argument + 2], 'order', order)
      if expiry ~= '' then
        redis.call('PEXPIREAT', key, expiry)
      elseif present then
        redis.call('PERSIST', key)
      end
      orders[key] = order
      changed = changed + 1
    end
  elseif present and string.sub(present, 1, #order) == order then
    redis.call('DEL', key)
    orders[key] = false
    changed = changed + 1
  end
  argument = argument + 4
end

for move = 1, moves do
  local at = 2 + 3 * (move - 1)
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 2])
end
return {'ok', changed}
