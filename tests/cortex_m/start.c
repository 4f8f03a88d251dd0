/* Where a Cortex-M begins: the end of its stack, and newlib's start, which asks the emulator for everything else. */
extern char stack[];
void _start(void);
__attribute__((section(".vectors"), used)) static void *const vectors[2] = {stack, (void *)_start};
