# The language, the warnings and what the presets switch on. Everything here holds for the whole
# tree: library, command, tests.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
# No NDEBUG: a broken invariant must stop before it reaches a disk, also at a user's.
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_SANITIZE "-O1 -g -fno-omit-frame-pointer")

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wconversion -Wshadow
                    # Messages of assert() name files as the tree does, wherever it was built.
                    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(SHEAF_WERROR)
  add_compile_options(-Werror)
endif()

if(SHEAF_ARENA_DEBUG)
  add_compile_definitions(SHEAF_ARENA_DEBUG)
endif()

if(NOT SHEAF_SANITIZE STREQUAL "")
  add_compile_options(-fsanitize=${SHEAF_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SHEAF_SANITIZE})
endif()

if(SHEAF_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()
