/* What the host does between layers, without any transfer of a plan: copies of tensors into another layout. */
#ifndef CERTILE_HOST_H
#define CERTILE_HOST_H

#include <stddef.h>

enum { CERTILE_MOST_AXES = 8 };

/* Copy elements of `bytes` bytes, `axes` sizes with a pitch (in elements) on either side. */
void certile_copy(unsigned char *to, const long *to_pitch, const unsigned char *from, const long *from_pitch,
                  const long *size, int axes, int bytes);

/* The same for those elements of an axis that stand in its list, all if that is NULL; `fill` stands for number -1. */
void certile_pick(unsigned char *to, const long *to_pitch, const unsigned char *from, const long *from_pitch,
                  const long *size, const long *const *index, int axes, int bytes, const unsigned char *fill);

#endif
