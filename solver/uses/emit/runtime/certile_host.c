/* What the host does between layers: see certile_host.h. */
#include "certile_host.h"

#include <string.h>

void certile_copy(unsigned char *to, const long *to_pitch, const unsigned char *from, const long *from_pitch,
                  const long *size, int axes, int bytes)
{
    if (axes == 0) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    if (axes == 1 && to_pitch[0] == 1 && from_pitch[0] == 1) {
        memcpy(to, from, (size_t)size[0] * (size_t)bytes);
        return;
    }
    for (long k = 0; k < size[0]; k++) {
        certile_copy(to + k * to_pitch[0] * bytes, to_pitch + 1, from + k * from_pitch[0] * bytes, from_pitch + 1,
                     size + 1, axes - 1, bytes);
    }
}

void certile_pick(unsigned char *to, const long *to_pitch, const unsigned char *from, const long *from_pitch,
                  const long *size, const long *const *index, int axes, int bytes, const unsigned char *fill)
{
    if (axes == 0) {
        memcpy(to, from ? from : fill, (size_t)bytes);
        return;
    }
    for (long k = 0; k < size[0]; k++) {
        const long at = index[0] ? index[0][k] : k;
        certile_pick(to + k * to_pitch[0] * bytes, to_pitch + 1, from && at >= 0 ? from + at * from_pitch[0] * bytes : NULL,
                     from_pitch + 1, size + 1, index + 1, axes - 1, bytes, fill);
    }
}
