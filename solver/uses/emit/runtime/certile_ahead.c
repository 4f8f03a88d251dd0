/* Transfers ahead of steps: see certile_ahead.h. */
#include "certile_ahead.h"

#include "certile_dma.h"

#ifdef CERTILE_CHECK
#include "certile_check.h"
#endif

/* Units u to u + number - 1 of a row, which lie behind each other on chip and are of one image. */
static void move(const certile_span *span, int y, int u, int number)
{
    const certile_rows *rows = span->rows;
    unsigned char *there = span->tensor + rows->first + y * rows->row + u / rows->units * rows->image;
    certile_dma_2d(certile_unit(rows, y, u), there + u % rows->units * rows->step, (size_t)rows->unit, (size_t)number,
                   rows->apart, rows->step);
}

/* How many units from one on lie behind each other, of one image. */
static int together(const certile_rows *rows, int y, int u)
{
    int end = (u / rows->units + 1) * rows->units;
    if (rows->at[y] < 0) {
        const certile_extent *one = &rows->extents[-1 - rows->at[y]];
        while (u >= one->until) {
            one++;
        }
        end = certile_min(end, one->until);
    }
    return end - u;
}

static void move_span(const certile_span *span)
{
    const certile_rows *rows = span->rows;
    const int units = rows->units * rows->images;
    if (rows->planes) {
        for (int u = 0; u < units; u++) {
            for (int y = span->begin; y < span->end; y++) {
                move(span, y, u, 1);
            }
        }
        return;
    }
    for (int i = 0; i < rows->images; i++) {
        for (int y = span->begin; y < span->end; y++) {
            for (int u = i * rows->units; u < (i + 1) * rows->units;) {
                const int number = together(rows, y, u);
                move(span, y, u, number);
                u += number;
            }
        }
    }
}

static void move_filters(const certile_transfer *transfer)
{
    const certile_weights *weights = transfer->weights;
    const int all = weights->channels * weights->bytes, from = transfer->low * weights->bytes;
    const int whole = transfer->high - transfer->low == weights->channels, runs = whole ? 1 : weights->runs;
    const int taps = (transfer->high - transfer->low) * weights->bytes * weights->runs, run = taps / runs;
    const int size = taps + weights->bias_bytes;
    for (int k = 0; k < transfer->number; k++) {
        const certile_filters *some = &transfer->filters[k];
        unsigned char *filter = weights->w + (ptrdiff_t)some->filter * all * weights->runs;
        for (int r = 0; r < runs; r++) {
            certile_dma_2d(certile_ocm + some->at + r * run, filter + (ptrdiff_t)r * all + from, (size_t)run,
                           (size_t)some->number, size, (ptrdiff_t)all * weights->runs);
        }
    }
    if (weights->bias_bytes) { /* a segment of their own wherever they lie */
        certile_dma_begin(transfer->operand, transfer->load);
    }
    for (int k = 0; weights->bias_bytes && k < transfer->number; k++) {
        const certile_filters *some = &transfer->filters[k];
        certile_dma_2d(certile_ocm + some->at + taps, weights->bias + (ptrdiff_t)some->filter * weights->bias_bytes,
                       (size_t)weights->bias_bytes, (size_t)some->number, size, weights->bias_bytes);
    }
}

static void push(const certile_transfer *transfer)
{
    certile_dma_begin(transfer->operand, transfer->load);
    if (transfer->weights) {
        move_filters(transfer);
    }
    for (int k = 0; !transfer->weights && k < transfer->number; k++) {
        move_span(&transfer->spans[k]);
    }
    certile_dma_start();
}

void certile_carry_out(const int *commands, size_t number, const certile_transfer *transfers, const certile_work *works)
{
    const size_t before = certile_dma_started();
    for (size_t n = 0; n < number; n++) {
        const int k = commands[n] / CERTILE_COMMANDS;
        switch (commands[n] % CERTILE_COMMANDS) {
        case CERTILE_PUSH:
#ifdef CERTILE_CHECK
            certile_before_transfer();
#endif
            push(&transfers[k]);
#ifdef CERTILE_CHECK
            certile_after_transfer(k, transfers[k].operand, transfers[k].segments, transfers[k].bytes);
#endif
            break;
        case CERTILE_WAIT:
            certile_dma_wait_for(before + (size_t)k);
            break;
        default:
            works[k].run(&works[k]);
        }
    }
    certile_dma_wait();
}
