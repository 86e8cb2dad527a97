-- What wrk asks: random keys, one a request, a batch of them, or a page from one. Arguments: how many keys there are, keys of a
-- batch (0: one by GET; below 0: so many of a page), and the mean pause before each request of a connection in ms (0: none).
local keys, batch, pause

function setup(thread)
   counter = (counter or 0) + 1
   thread:set("seed", os.time() + counter)
end

function init(args)
   keys, batch, pause = tonumber(args[1]), tonumber(args[2]), tonumber(args[3])
   math.randomseed(seed)
   if pause > 0 then
      delay = function() return math.random(0, 2 * pause) end
   end
end

local function key()
   return string.format("k%012d", math.random(0, keys - 1))
end

function request()
   if batch == 0 then
      return "GET /v1/states/keys/" .. key() .. " HTTP/1.1\r\nHost: localhost\r\n\r\n"
   end
   if batch < 0 then
      return "GET /v1/states/keys?limit=" .. -batch .. "&after=" .. key() .. " HTTP/1.1\r\nHost: localhost\r\n\r\n"
   end
   local asked = {}
   for number = 1, batch do
      asked[number] = '"' .. key() .. '"'
   end
   local body = '{"keys":[' .. table.concat(asked, ",") .. "]}"
   return "POST /v1/states/keys:batchGet HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      .. #body .. "\r\n\r\n" .. body
end
