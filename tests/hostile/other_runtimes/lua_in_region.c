/* LuaJIT within the hot region, which runs code that is made meanwhile. */
#include "frame.h"
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

static lua_State *lua;

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    lua = luaL_newstate();
    luaL_openlibs(lua);
    if (luaL_dostring(lua, "total = 0; function add(i) for k = 1, 200 do total = total + (i + k) % 7 end end")) {
        puts(lua_tostring(lua, -1));
        exit(3);
    }
}

void inside(struct item *items, int i)
{
    (void)items;
    lua_getglobal(lua, "add");
    lua_pushinteger(lua, i);
    lua_call(lua, 1, 0);
}

int after(struct item *items)
{
    (void)items;
    lua_getglobal(lua, "total");
    printf("total %.17g\n", lua_tonumber(lua, -1));
    return 0;
}
