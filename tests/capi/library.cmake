# The tests call the library as others do: through libtilewright.so, and from a program in C.
target_link_libraries(test_capi PRIVATE tilewright_library)
find_program(TW_CC NAMES gcc cc)
set(program ${CMAKE_CURRENT_BINARY_DIR}/use_tilewright)
add_custom_command(OUTPUT ${program}
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/capi/use.c ${CMAKE_SOURCE_DIR}/tw/capi/tilewright.h
    tilewright_library
  COMMAND ${TW_CC} -std=c11 -Wall -Wextra -Wpedantic -Werror -I${CMAKE_SOURCE_DIR}/tw/capi
    ${CMAKE_CURRENT_SOURCE_DIR}/capi/use.c -o ${program} $<TARGET_FILE:tilewright_library>
    -Wl,-rpath,$<TARGET_FILE_DIR:tilewright_library>)
add_custom_target(capi_use DEPENDS ${program})
add_dependencies(test_capi capi_use)
target_compile_definitions(test_capi PRIVATE TW_USE="${program}"
  TW_LIBRARY="$<TARGET_FILE:tilewright_library>")
