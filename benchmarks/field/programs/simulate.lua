-- Bodies as tables, a grid of numbers, and strings: what a game's script does.
local n, steps = tonumber(arg[1]) or 2000, tonumber(arg[2]) or 200
local bodies, seed = {}, 23
local function draw()
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed / 2147483648
end
for i = 1, n do
  bodies[i] = { x = draw(), y = draw(), vx = draw() - 0.5, vy = draw() - 0.5, mass = 1 + draw(), name = "b" .. i }
end
local grid, size = {}, 64
for i = 1, size * size do grid[i] = 0 end
for s = 1, steps do
  for i = 1, #bodies do
    local b = bodies[i]
    b.x, b.y = b.x + 0.01 * b.vx, b.y + 0.01 * b.vy
    if b.x < 0 or b.x >= 1 then b.vx = -b.vx; b.x = b.x < 0 and -b.x or 1.999999 - b.x end
    if b.y < 0 or b.y >= 1 then b.vy = -b.vy; b.y = b.y < 0 and -b.y or 1.999999 - b.y end
    local cell = math.floor(b.x * size) + size * math.floor(b.y * size) + 1
    grid[cell] = (grid[cell] or 0) + b.mass
  end
  for i = 1, size * size do grid[i] = grid[i] * 0.99 end
end
local sum = 0
for i = 1, size * size do sum = sum + grid[i] end
print(string.format("%.9f", sum))
