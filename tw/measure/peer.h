#pragma once

#include <stdint.h>

/* The C ABI of a plug-in: a shared object that exports `tw_peer`. It is a library to compare with
   (a peer), or a callable to be judged (`tilewright check KERNEL --callable FILE.so`); each is
   loaded into a process of its own, which may not start others, signal them, connect to anything or
   write files. Fields keep their order; TW_PEER_ABI changes with any of them. */

#define TW_PEER_ABI 1

struct TwPeerTensor {
  void* data;
  const char* dtype; /* "f32", "bf16", .. */
  int rank;
  const int64_t* dims;
  const int64_t* strides; /* in elements */
};

/* The tensors of one call, in the order of the kernel's parameters. */
struct TwPeerSet {
  const TwPeerTensor* inputs;
  int input_count;
  const TwPeerTensor* outputs;
  int output_count;
};

struct TwPeerTask {
  const char* op;      /* name of a kernel of the library, e.g. "gemm" */
  const char* options; /* its options, sorted: "epilogue=bias op=add"; an absent one
                          has the kernel's default */
  int threads;
};

struct TwPeer {
  int abi;          /* TW_PEER_ABI */
  const char* name; /* "openblas" */
  /* Makes ready to run on the sets; all have the same shapes, memory stays where it is until
     release. Values of inputs mean nothing yet, and change between calls. Returns the state, or
     null with a reason in `text`; on success `text` says what runs: version and kernel set. */
  void* (*prepare)(const TwPeerTask* task, const TwPeerSet* sets, int count, char* text,
                   int text_size);
  /* Computes the outputs of one set, which overlap nothing; 0, or an error code. All is done when
     it returns. Calls for different sets may come from different threads at once. */
  int (*run)(void* state, int set);
  void (*release)(void* state);
};

extern "C" __attribute__((visibility("default"))) const TwPeer* tw_peer();
