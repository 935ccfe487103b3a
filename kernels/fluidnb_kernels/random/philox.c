// Random words that follow from a key and a counter alone: Philox 4x64-10 (Salmon et al., 2011).

// the upper half of a product
static uint64_t upper_half(uint64_t a, uint64_t b) {
    const uint64_t low = (a & 0xffffffffu) * (b & 0xffffffffu), one = (a >> 32) * (b & 0xffffffffu);
    const uint64_t two = (a & 0xffffffffu) * (b >> 32);
    const uint64_t middle = (low >> 32) + (one & 0xffffffffu) + (two & 0xffffffffu);
    return (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32) + (middle >> 32);
}

// Makes the four words of a block.
static void random_words(uint64_t *c, uint64_t block, uint64_t run, uint64_t key0, uint64_t key1) {
    c[0] = block + 1, c[1] = 0, c[2] = run, c[3] = 0;
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = UINT64_C(0xD2E7470EE14C6C93), b = UINT64_C(0xCA5A826395121157);
        const uint64_t first = upper_half(b, c[2]) ^ c[1] ^ key0, third = upper_half(a, c[0]) ^ c[3] ^ key1;
        c[1] = b * c[2], c[3] = a * c[0];
        c[0] = first, c[2] = third;
        key0 += UINT64_C(0x9E3779B97F4A7C15), key1 += UINT64_C(0xBB67AE8584CAA73B);
    }
}

// number i of a stream from [0, 1), 24 random bits for float and 53 for double; words keeps the block of the last one
static T random_unit(uint64_t *words, ptrdiff_t i, uint64_t run, uint64_t key0, uint64_t key1) {
    const int each = sizeof(T) == 4 ? 8 : 4, j = (int)(i % each);
    if (j == 0) random_words(words, (uint64_t)(i / each), run, key0, key1);
    if (each == 8) return (T)((words[j / 2] >> (j % 2 * 32 + 8)) & 0xffffff) / (T)16777216;
    return (T)((double)(words[j % 4] >> 11) / 9007199254740992.0);
}

// number i of a stream of doubles from [0, 1)
static double random_double(uint64_t i, uint64_t run, uint64_t key0, uint64_t key1) {
    uint64_t words[4];
    random_words(words, i / 4, run, key0, key1);
    return (double)(words[i % 4] >> 11) / 9007199254740992.0;
}
