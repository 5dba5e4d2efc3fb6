# The worker program that tests/check times compiled kernels in.
add_executable(check_worker check/worker/worker.cpp)
target_link_libraries(check_worker PRIVATE tw_check)
add_dependencies(test_check check_worker)
target_compile_definitions(test_check PRIVATE TW_WORKER="$<TARGET_FILE:check_worker>")
include(check/zoo.cmake)
add_dependencies(test_check zoo)
target_compile_definitions(test_check PRIVATE TW_ZOO="${CMAKE_CURRENT_BINARY_DIR}/zoo")
