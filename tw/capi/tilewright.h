/// Tilewright for C: models and kernels that run on this machine.
///
/// Calls give TW_OK or the kind of error; its text is then in tw_last_error() and the way out,
/// where there is one, in tw_last_error_hint(). A call that fails leaves what it was to fill as it
/// was. Nothing is thrown. Functions may be added within one TW_ABI_VERSION, structs and meanings
/// stay.
///
///   tw_session* session = NULL;
///   if (tw_session_load("model.onnx", NULL, &session) != TW_OK) fail(tw_last_error());
///   int64_t dims[] = {1, 3};
///   tw_tensor x = {.data = values, .dtype = {TW_FLOAT, 32, 1}, .rank = 2, .dims = dims};
///   tw_tensor y = {0};
///   if (tw_session_run(session, &x, 1, &y, 1) != TW_OK) fail(tw_last_error());
///   .. y.data, y.dims ..
///   tw_tensor_release(&y);
///   tw_session_free(session);
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_API __attribute__((visibility("default")))

#define TW_ABI_VERSION 1

/// The TW_ABI_VERSION that the library was built with: a program checks that it is its own.
TW_API int tw_abi_version(void);
/// The library's release, "0.1.0".
TW_API const char* tw_version(void);

enum {
  TW_OK = 0,
  TW_USER_ERROR = 2,      ///< the call or a file is wrong
  TW_ENV_ERROR = 3,       ///< the machine lacks something: a compiler, memory, disk space
  TW_DEVICE_ERROR = 4,    ///< a device failed
  TW_INTERNAL_ERROR = 70  ///< a bug of tilewright
};

/// Of the last call that failed on this thread: one line, "" before any. Valid until the next one.
TW_API const char* tw_last_error(void);
TW_API const char* tw_last_error_hint(void);  ///< "" where there is none

/// Element types as DLPack writes them. lanes is 1.
typedef struct tw_dtype {
  uint8_t code;  ///< one of those below
  uint8_t bits;
  uint16_t lanes;
} tw_dtype;

enum {
  TW_INT = 0,
  TW_UINT = 1,
  TW_FLOAT = 2,
  TW_BFLOAT = 4,
  TW_BOOL = 6,  ///< 8 bits
  TW_FLOAT8_E4M3FN = 10,
  TW_FLOAT8_E5M2 = 12,
  TW_FLOAT8_E8M0 = 14,
  TW_FLOAT6_E2M3 = 15,
  TW_FLOAT6_E3M2 = 16,
  TW_FLOAT4_E2M1 = 17
};

typedef struct tw_tensor {
  void* data;  ///< aligned to the element; host memory, of kernels: of their device; inputs are
               ///< only read
  tw_dtype dtype;
  int32_t rank;
  const int64_t* dims;     ///< rank of them; may be NULL where rank is 0
  const int64_t* strides;  ///< in elements, may be 0 or negative; NULL: row-major without gaps
  void* owner;             ///< of memory that the library made; NULL in tensors of the caller
} tw_tensor;

/// Frees an output that tw_session_run() made, and clears the struct. Does nothing to tensors of
/// the caller and to NULL. Outputs outlive their session.
TW_API void tw_tensor_release(tw_tensor* tensor);

typedef struct tw_session tw_session;

/// Begin with `size`: later versions may add fields at the end. All others may be 0.
typedef struct tw_session_options {
  size_t size;           ///< sizeof(tw_session_options)
  int32_t threads;       ///< most threads of a step; 0: all of the machine
  int64_t memory_limit;  ///< bytes that a run may take beside its inputs; 0: what the machine has
} tw_session_options;

/// Reads an ONNX model and makes it ready; options may be NULL. Kernels are compiled with the first
/// run whose inputs need them and kept on disk.
TW_API int tw_session_load(const char* path, const tw_session_options* options,
                           tw_session** session);
/// No run may be under way. Does nothing to NULL.
TW_API void tw_session_free(tw_session* session);

/// Inputs and outputs count from 0 in the model's order. Pointers given are valid until
/// tw_session_free(). An index or axis that is too large is a user error.
TW_API int tw_session_input_count(const tw_session* session, size_t* count);
TW_API int tw_session_input_name(const tw_session* session, size_t i, const char** name);
TW_API int tw_session_input_dtype(const tw_session* session, size_t i, tw_dtype* dtype);
/// A dim is -1 where the model leaves it open. Rank is -1, without dims, where it is open itself.
TW_API int tw_session_input_dims(const tw_session* session, size_t i, int32_t* rank,
                                 const int64_t** dims);
/// A number as text, the name of an open dim, an expression of names ("2*N"), or "?".
TW_API int tw_session_input_dim_name(const tw_session* session, size_t i, int32_t axis,
                                     const char** name);
TW_API int tw_session_output_count(const tw_session* session, size_t* count);
TW_API int tw_session_output_name(const tw_session* session, size_t i, const char** name);
TW_API int tw_session_output_dtype(const tw_session* session, size_t i, tw_dtype* dtype);
TW_API int tw_session_output_dims(const tw_session* session, size_t i, int32_t* rank,
                                  const int64_t** dims);
TW_API int tw_session_output_dim_name(const tw_session* session, size_t i, int32_t axis,
                                      const char** name);

/// Runs the model: all inputs and all outputs, in order. Open dims of one name must agree. An
/// output with data is written there: it must have the dtype and the dims that the inputs lead to,
/// no gaps, and overlap nothing. Other fields of an output without data are ignored; the library
/// makes the tensor, which the caller gives back with tw_tensor_release(). Threads may run one
/// session at once.
TW_API int tw_session_run(const tw_session* session, const tw_tensor* inputs, size_t n_inputs,
                          tw_tensor* outputs, size_t n_outputs);

/// A place where kernels run: "cpu:0" is this machine, "cuda:N" its Nth NVIDIA GPU.
typedef struct tw_device tw_device;
TW_API int tw_device_open(const char* name, tw_device** device);
/// Kernels outlive their device. Does nothing to NULL.
TW_API void tw_device_free(tw_device* device);

/// A kernel of the library, made for one problem on one device:
///
///   tw_kernel_open(gpu, "softmax", "m=4096,n=4096", bf16, NULL, NULL, &kernel);
///   tw_tensor arguments[] = {x, y};  // memory of the GPU
///   tw_kernel_prepare(kernel, arguments, 2);
///   tw_kernel_launch(kernel, arguments, 2, stream);
///
/// Threads may use one kernel at once.
typedef struct tw_kernel tw_kernel;

/// Begin with `size`, as with tw_session_options.
typedef struct tw_kernel_options {
  size_t size;          ///< sizeof(tw_kernel_options)
  int32_t threads;      ///< most threads of a launch on a CPU; 0: all of the machine
  const char* mapping;  ///< "cuda1 warps=8"; NULL: chosen for the machine
} tw_kernel_options;

/// `shape` and `choices` are lists "name=value,name=value" of the axes and of the options that
/// `tilewright kernels NAME` shows; NULL, and what a list leaves out: the usual ones. `dtype` is
/// that of the main inputs and outputs. Nothing is compiled.
TW_API int tw_kernel_open(const tw_device* device, const char* name, const char* shape,
                          tw_dtype dtype, const char* choices, const tw_kernel_options* options,
                          tw_kernel** kernel);
/// No call may be under way; work that was launched may be. Does nothing to NULL.
TW_API void tw_kernel_free(tw_kernel* kernel);

typedef struct tw_argument {
  const char* name;  ///< valid until tw_kernel_free(), as dims are
  tw_dtype dtype;
  int32_t rank;
  const int64_t* dims;  ///< of the problem
  int32_t output;       ///< 1: the kernel writes it; 0: it only reads
} tw_argument;

/// Arguments count from 0 in the order in which calls take them.
TW_API int tw_kernel_argument_count(const tw_kernel* kernel, size_t* count);
TW_API int tw_kernel_argument(const tw_kernel* kernel, size_t i, tw_argument* argument);
/// "cuda1 warps=8", valid until tw_kernel_free().
TW_API int tw_kernel_mapping(const tw_kernel* kernel, const char** mapping);

/// Compiles the form of the kernel that serves tensors with such strides and addresses, or loads it
/// from disk. A launch does it too where it was not done before.
TW_API int tw_kernel_prepare(const tw_kernel* kernel, const tw_tensor* arguments, size_t n);
/// Its source, as the compiler gets it; valid until tw_kernel_free().
TW_API int tw_kernel_source(const tw_kernel* kernel, const tw_tensor* arguments, size_t n,
                            const char** source);
/// Runs the kernel: all arguments, in order, with memory of its device. Outputs overlap nothing.
/// Extents may differ from the problem's, which the tiling was chosen for. On a GPU the call
/// returns when the work is in `stream`, a CUstream or cudaStream_t (NULL: the default one), which
/// may be capturing once the kernel was launched before; on a CPU, where stream must be NULL, when
/// the work is done.
TW_API int tw_kernel_launch(const tw_kernel* kernel, const tw_tensor* arguments, size_t n,
                            void* stream);

/// How far a result may be from the exact one.
typedef struct tw_accuracy {
  const char* family;  ///< "exact", "elementwise", "reduction", "norm", "softmax" or "gemm"
  tw_dtype dtype;      ///< of the result; sums are made in f32, of f64 in f64
  int64_t terms;       ///< added up to one element
  double ulps;         ///< that are stated for the functions used, beside the family's own
} tw_accuracy;
/// The most that elements may be off whose exact values are `exact`, and whose terms have
/// magnitudes that sum to `sum_abs`: n of each, in order.
TW_API int tw_error_bound(const tw_accuracy* accuracy, size_t n, const double* exact,
                          const double* sum_abs, double* bound);

#ifdef __cplusplus
}
#endif

#endif
