// What Go calls of libzstd.
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct risso_zstd risso_zstd;

risso_zstd *risso_zstd_new(void);
void risso_zstd_free(risso_zstd *c);
size_t risso_zstd_bound(size_t size);
// NULL where a result is no error.
const char *risso_zstd_error(size_t result);
// One frame at once.
size_t risso_zstd_frame(risso_zstd *c, void *dst, size_t room, const void *src, size_t size, int level);
// A frame piece by piece: begin it, push bytes, push with end until nothing is left.
size_t risso_zstd_begin(risso_zstd *c, int level);
size_t risso_zstd_push(risso_zstd *c, void *dst, size_t room, size_t *gave, const void *src, size_t size, size_t *took, int end);

#ifdef __cplusplus
}
#endif
