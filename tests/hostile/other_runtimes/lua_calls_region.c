/* LuaJIT within the program: code that it makes while running calls the hot region. */
#include "frame.h"
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

static const char script[] = "local ffi = require 'ffi'\n"
                             "ffi.cdef 'void work(void *items, int count);'\n"
                             "local items, steps, count = ...\n"
                             "local sum = 0\n"
                             "for step = 1, steps do ffi.C.work(items, count); sum = sum + step % 7 end\n"
                             "return sum\n";

void drive(struct item *items)
{
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    if (luaL_loadstring(lua, script)) {
        puts(lua_tostring(lua, -1));
        exit(3);
    }
    lua_pushlightuserdata(lua, items);
    lua_pushinteger(lua, STEPS);
    lua_pushinteger(lua, ITEMS);
    if (lua_pcall(lua, 3, 1, 0)) {
        puts(lua_tostring(lua, -1));
        exit(3);
    }
    printf("sum %.17g %.17g\n", items[7].x, lua_tonumber(lua, -1));
    lua_close(lua);
    exit(0);
}
