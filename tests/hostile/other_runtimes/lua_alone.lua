-- All of the time is in code that LuaJIT makes while it runs, over records of its own.
local ffi = require 'ffi'
ffi.cdef 'struct item { double x, y, z, w; int64_t a, b, c, d; };'
local items = ffi.new('struct item[?]', 20000)
for i = 0, 19999 do items[i].y = i % 1000 end
for step = 1, 2000 do
    for i = 0, 19999 do items[i].x = items[i].x + 0.5 * items[i].y end
end
print(string.format('sum %.17g', items[7].x))
