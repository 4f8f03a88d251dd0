/* What a compiler may call where there is no C library: only in the program that `make bare` links. */
#ifdef CERTILE_BARE
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        ((char *)to)[k] = ((const char *)from)[k];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        ((char *)to)[k] = (char)value;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    char *a = to;
    const char *b = from;
    if (a < b) {
        return memcpy(to, from, bytes);
    }
    for (size_t k = bytes; k > 0; k--) {
        a[k - 1] = b[k - 1];
    }
    return to;
}

int memcmp(const void *one, const void *two, size_t bytes)
{
    const unsigned char *a = one, *b = two;
    for (size_t k = 0; k < bytes; k++) {
        if (a[k] != b[k]) {
            return a[k] - b[k];
        }
    }
    return 0;
}
#else
typedef int certile_not_empty;
#endif
