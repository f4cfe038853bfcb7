/* Hashes of passwords, with Argon2: hash ROUNDS. */
#include "argon2.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    unsigned char hash[32], salt[16] = "salt of a field";
    for (int i = 0; i < rounds; i++) {
        salt[15] = (unsigned char)i;
        if (argon2id_hash_raw(3, 1 << 15, 1, "password", 8, salt, sizeof salt, hash, sizeof hash) != ARGON2_OK)
            return 1;
    }
    for (unsigned i = 0; i < sizeof hash; i++)
        printf("%02x", hash[i]);
    printf("\n");
    return 0;
}
