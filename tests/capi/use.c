/* use MODEL: runs y = Relu(x + [1, -2, 0.5]) of x: f32[N,3] through the C ABI, and prints what it sees. */
#include <stdio.h>

#include "tilewright.h"

static int fail(const char* what) {
  fprintf(stderr, "%s: %s (%s)\n", what, tw_last_error(), tw_last_error_hint());
  return 1;
}

static void print_values(const tw_tensor* t) {
  const float* values = t->data;
  int64_t count = 1;
  for (int32_t k = 0; k < t->rank; ++k) count *= t->dims[k];
  for (int64_t i = 0; i < count; ++i) printf(" %g", values[i]);
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc != 2 || tw_abi_version() != TW_ABI_VERSION) return 2;
  tw_session_options options = {.size = sizeof options, .threads = 1};
  tw_session* session = NULL;
  if (tw_session_load(argv[1], &options, &session) != TW_OK) return fail("load");

  size_t count;
  const char *name, *dim;
  tw_dtype dtype;
  int32_t rank;
  const int64_t* extents;
  if (tw_session_input_count(session, &count) != TW_OK ||
      tw_session_input_name(session, 0, &name) != TW_OK ||
      tw_session_input_dtype(session, 0, &dtype) != TW_OK ||
      tw_session_input_dims(session, 0, &rank, &extents) != TW_OK ||
      tw_session_input_dim_name(session, 0, 0, &dim) != TW_OK)
    return fail("ask");
  printf("%d %s %d:%d:%d %d [%d %d] %s\n", (int)count, name, dtype.code, dtype.bits, dtype.lanes,
         (int)rank, (int)extents[0], (int)extents[1], dim);

  float values[] = {1, 1, 1, 0, 3, -1};
  const int64_t dims[] = {2, 3};
  tw_tensor x = {.data = values, .dtype = {TW_FLOAT, 32, 1}, .rank = 2, .dims = dims};
  tw_tensor y = {0};
  if (tw_session_run(session, &x, 1, &y, 1) != TW_OK) return fail("run");
  print_values(&y);
  tw_session_free(session);
  print_values(&y);
  tw_tensor_release(&y);
  return y.data != NULL || tw_session_load("none.onnx", NULL, &session) != TW_USER_ERROR;
}
