/* Tiles in lines: see certile_lines.h. */
#include "certile_lines.h"

#include "certile_dma.h"

void certile_lines_begin(certile_lines *lines)
{
    for (int k = 0; k < 2; k++) {
        lines->lo[k] = lines->hi[k] = lines->covered[k] = 0;
    }
}

/* Copy the part of these rows and columns that lies outside the lines to them. */
static void keep(certile_lines *lines, int first, int end, int left, int right)
{
    const int planes = lines->extent[0] * lines->extent[1] * lines->extent[2];
    const int all = lines->again * lines->width, places = all + lines->beyond * lines->columns;
    for (int plane = 0; plane < planes; plane++) {
        unsigned char *base = lines->base + (ptrdiff_t)plane * places * lines->element;
        for (int y = certile_max(first, lines->lo[0] + lines->again); y < end; y++) {
            for (int x = left; x < right; x++) {
                const int from = all + y % lines->beyond * lines->columns + x % lines->columns;
                const int to = y % lines->again * lines->width + x % lines->width;
                memcpy(base + (ptrdiff_t)to * lines->element, base + (ptrdiff_t)from * lines->element,
                       (size_t)lines->element);
            }
        }
    }
}

/* The part of lo..hi beyond a range that begins before it. */
static int after(int lo, int hi, int first, int end)
{
    return first < end ? certile_min(certile_max(lo, end), certile_max(lo, hi)) : lo;
}

static void load(const certile_lines *lines, const certile_tensor *tensor, const certile_box *box)
{
    int x[CERTILE_AXES], of[CERTILE_AXES]; /* of: by letter (b g n rows columns) where it stands among the axes */
    if (certile_empty(box)) {
        return;
    }
    for (int a = 0; a < CERTILE_AXES; a++) {
        of[lines->order[a]] = a;
        x[a] = box->lo[lines->order[a]];
    }
    certile_dma_begin(CERTILE_IN, 1);
    for (int axis = 0; axis >= 0;) {
        size_t place = 0;
        for (int a = 0; a < CERTILE_AXES; a++) {
            place = place * (size_t)tensor->size[a] + (size_t)x[a];
        }
        unsigned char *chip = (unsigned char *)certile_lines_at(lines, x[of[0]], x[of[1]], x[of[2]], x[of[3]], x[of[4]]);
        certile_dma_2d(chip, tensor->base + place * (size_t)tensor->element, (size_t)tensor->element, 1, 0, 0);
        for (axis = CERTILE_AXES - 1; axis >= 0; axis--) {
            if (++x[axis] < box->hi[lines->order[axis]]) {
                break;
            }
            x[axis] = box->lo[lines->order[axis]];
        }
    }
    certile_dma_start();
}

void certile_lines_load(certile_lines *lines, const certile_tensor *tensor, const certile_box *box, int turns,
                        const int next[2])
{
    const int row = lines->down ? 3 : 4, column = 7 - row;
    const int fresh = lines->lo[0] == lines->hi[0] && lines->lo[1] == lines->hi[1] && lines->hi[0] == 0 && lines->hi[1] == 0;
    const int kept[2] = {turns ? box->lo[row] : next[0], turns ? box->hi[row] : next[1]};
    certile_box part = *box;
    if (turns) {
        lines->covered[0] = fresh ? 0 : lines->lo[0];
        lines->covered[1] = fresh ? 0 : lines->hi[0];
    }
    part.lo[row] = after(box->lo[row], box->hi[row], lines->covered[0], lines->covered[1]);
    if (!turns) {
        part.lo[column] = after(box->lo[column], box->hi[column], lines->lo[1], lines->hi[1]);
    }
    keep(lines, certile_max(lines->lo[0], kept[0]), certile_min(lines->hi[0], kept[1]), lines->lo[1],
         turns ? lines->hi[1] : certile_min(lines->hi[1], box->lo[column]));
    lines->lo[0] = box->lo[row];
    lines->hi[0] = box->hi[row];
    lines->lo[1] = box->lo[column];
    lines->hi[1] = box->hi[column];
    for (int k = 0; k < 3; k++) {
        lines->first[k] = box->lo[k];
    }
    load(lines, tensor, &part);
}
