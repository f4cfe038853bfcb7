/* Inserts, joins, groups and sorts in memory, with SQLite: sqlite ROWS. */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

static sqlite3 *db;

static int print(void *none, int columns, char **values, char **names)
{
    for (int i = 0; i < columns; i++)
        printf("%s%s", values[i] ? values[i] : "-", i + 1 < columns ? " " : "\n");
    return 0;
}

static void run(const char *sql)
{
    char *error = 0;
    if (sqlite3_exec(db, sql, print, 0, &error) != SQLITE_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    int rows = argc > 1 ? atoi(argv[1]) : 200000;
    sqlite3_open(":memory:", &db);
    run("create table item(id integer primary key, kind int, price real, name text)");
    run("create table sale(id integer primary key, item int, amount int)");
    run("begin");
    sqlite3_stmt *item, *sale;
    sqlite3_prepare_v2(db, "insert into item values(?,?,?,?)", -1, &item, 0);
    sqlite3_prepare_v2(db, "insert into sale(item,amount) values(?,?)", -1, &sale, 0);
    unsigned x = 23;
    for (int i = 0; i < rows; i++) {
        char name[24];
        x = x * 1664525u + 1013904223u;
        snprintf(name, sizeof name, "item-%08x", x);
        sqlite3_bind_int(item, 1, i);
        sqlite3_bind_int(item, 2, (int)(x >> 24) % 50);
        sqlite3_bind_double(item, 3, (x >> 8) * 1e-5);
        sqlite3_bind_text(item, 4, name, -1, SQLITE_TRANSIENT);
        sqlite3_step(item);
        sqlite3_reset(item);
        sqlite3_bind_int(sale, 1, (int)((x >> 3) % (unsigned)rows));
        sqlite3_bind_int(sale, 2, (int)(x >> 28));
        sqlite3_step(sale);
        sqlite3_reset(sale);
    }
    run("commit");
    run("create index by_item on sale(item)");
    run("select kind, count(*), round(sum(price),3) from item group by kind order by 3 desc limit 5");
    run("select kind, sum(amount) from item join sale on sale.item = item.id group by kind order by 2 limit 5");
    run("select count(*) from item a where price > (select avg(price) from item b where b.kind = 7)");
    run("select name from item order by name limit 3 offset 1000");
    run("select count(*), sum(length(name)) from item where name like '%ab%' or name like '%c_d%'");
    return 0;
}
