//go:build cgo && linux && (amd64 || arm64)

// libzstd as DuckDB's library has it: in a namespace of its own. The declarations are those of zstd.h 1.5 (stable part, and
// compressStream2_simpleArgs). A DuckDB that has them no more does not link.
#include "native.h"

namespace duckdb_zstd {
struct ZSTD_CCtx_s;
enum ZSTD_cParameter { ZSTD_c_compressionLevel = 100, ZSTD_c_checksumFlag = 201 };
enum ZSTD_ResetDirective { ZSTD_reset_session_only = 1, ZSTD_reset_parameters = 2, ZSTD_reset_session_and_parameters = 3 };
enum ZSTD_EndDirective { ZSTD_e_continue = 0, ZSTD_e_flush = 1, ZSTD_e_end = 2 };
ZSTD_CCtx_s *ZSTD_createCCtx();
size_t ZSTD_freeCCtx(ZSTD_CCtx_s *);
size_t ZSTD_compressBound(size_t);
unsigned ZSTD_isError(size_t);
const char *ZSTD_getErrorName(size_t);
size_t ZSTD_compressCCtx(ZSTD_CCtx_s *, void *, size_t, const void *, size_t, int);
size_t ZSTD_CCtx_reset(ZSTD_CCtx_s *, ZSTD_ResetDirective);
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx_s *, ZSTD_cParameter, int);
size_t ZSTD_compressStream2_simpleArgs(ZSTD_CCtx_s *, void *, size_t, size_t *, const void *, size_t, size_t *, ZSTD_EndDirective);
} // namespace duckdb_zstd

using namespace duckdb_zstd;

static ZSTD_CCtx_s *of(risso_zstd *c) { return reinterpret_cast<ZSTD_CCtx_s *>(c); }

extern "C" {

risso_zstd *risso_zstd_new(void) { return reinterpret_cast<risso_zstd *>(ZSTD_createCCtx()); }

void risso_zstd_free(risso_zstd *c) { ZSTD_freeCCtx(of(c)); }

size_t risso_zstd_bound(size_t size) { return ZSTD_compressBound(size); }

const char *risso_zstd_error(size_t result) { return ZSTD_isError(result) ? ZSTD_getErrorName(result) : NULL; }

size_t risso_zstd_frame(risso_zstd *c, void *dst, size_t room, const void *src, size_t size, int level) {
	return ZSTD_compressCCtx(of(c), dst, room, src, size, level);
}

size_t risso_zstd_begin(risso_zstd *c, int level) {
	ZSTD_CCtx_reset(of(c), ZSTD_reset_session_and_parameters);
	size_t r = ZSTD_CCtx_setParameter(of(c), ZSTD_c_compressionLevel, level);
	return ZSTD_isError(r) ? r : ZSTD_CCtx_setParameter(of(c), ZSTD_c_checksumFlag, 1);
}

size_t risso_zstd_push(risso_zstd *c, void *dst, size_t room, size_t *gave, const void *src, size_t size, size_t *took, int end) {
	return ZSTD_compressStream2_simpleArgs(of(c), dst, room, gave, src, size, took, end ? ZSTD_e_end : ZSTD_e_continue);
}
}
