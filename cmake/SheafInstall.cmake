# What `cmake --install` puts where: library, headers, command, pkg-config file, CMake package,
# manual page, completions.
include(CMakePackageConfigHelpers)

install(TARGETS sheaf EXPORT SheafTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${models_data} DESTINATION ${CMAKE_INSTALL_DATADIR}/sheaf)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET sheaf_cli)
  install(TARGETS sheaf_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The prefix is known for certain only when installing (`cmake --install --prefix`), so the
# pkg-config file is completed then.
foreach(dir INCLUDEDIR LIBDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(SHEAF_PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(SHEAF_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
set(SHEAF_PC_PREFIX "@CMAKE_INSTALL_PREFIX@")
configure_file(packaging/sheaf.pc.in sheaf.pc.in @ONLY)
install(CODE "configure_file(${PROJECT_BINARY_DIR}/sheaf.pc.in ${PROJECT_BINARY_DIR}/sheaf.pc @ONLY)")
install(FILES ${PROJECT_BINARY_DIR}/sheaf.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Sheaf)
configure_package_config_file(cmake/SheafConfig.cmake.in SheafConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor release may change the API.
write_basic_package_version_file(SheafConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT SheafTargets NAMESPACE Sheaf:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/SheafConfig.cmake
              ${PROJECT_BINARY_DIR}/SheafConfigVersion.cmake
        DESTINATION ${package_dir})

# The manual page and the shells' completions come from the command's own table of commands.
if(TARGET sheaf_cli AND NOT CMAKE_CROSSCOMPILING)
  set(generated_files)
  function(sheaf_generate file destination)
    set(path ${PROJECT_BINARY_DIR}/share/${file})
    add_custom_command(OUTPUT ${path}
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/share
                       COMMAND sheaf_cli ${ARGN} > ${path}
                       DEPENDS sheaf_cli
                       VERBATIM)
    install(FILES ${path} DESTINATION ${destination})
    set(generated_files ${generated_files} ${path} PARENT_SCOPE)
  endfunction()
  sheaf_generate(sheaf.1 ${CMAKE_INSTALL_MANDIR}/man1 man)
  sheaf_generate(sheaf ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
  sheaf_generate(_sheaf ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
  sheaf_generate(sheaf.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
  add_custom_target(sheaf_generated ALL DEPENDS ${generated_files})
endif()
