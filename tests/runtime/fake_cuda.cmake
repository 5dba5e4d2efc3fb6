# A CUDA driver without a GPU, which tests name in TW_CUDA_DRIVER. Its file has a name of its own:
# the compiler of CUDA texts looks for a loaded libcuda.so.1, and needs a real one.
add_library(fake_cuda MODULE runtime/fake/fake_cuda.cpp)
target_link_libraries(fake_cuda PRIVATE tw_options)
set_target_properties(fake_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
foreach(user IN ITEMS test_capi test_check test_cli test_runtime test_jit test_emu)
  add_dependencies(${user} fake_cuda)
  target_compile_definitions(${user} PRIVATE TW_FAKE_CUDA="$<TARGET_FILE:fake_cuda>")
endforeach()
