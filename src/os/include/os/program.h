// SPDX-License-Identifier: BSD-2-Clause
// Which file runs for the name of a program, and does the dynamic loader heed the environment for
// it?
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace weft::os {

// The file that execvp(3) runs for that name: the name itself when it has a slash, else the first
// file of that name in a directory of $PATH that this user may execute. Errors: ENOENT; EACCES when
// what was found is no file that this user may execute.
Result<std::string> find_program(const std::string& name);

// Success when LD_LIBRARY_PATH has an effect on that program, or on the interpreter that its first
// line names. Errors: EPERM when it gains rights (set-user-ID, set-group-ID, capabilities), ENOEXEC
// when it is linked statically or for another processor; the message says which.
Status check_loader_heeds(const std::string& path);

// Sets a variable of the environment of this process.
void set_environment(const std::string& name, const std::string& value);

// Replaces this process by that program, `arguments` without its name. Returns only when that
// failed.
Error run_program(const std::string& path, const std::vector<std::string>& arguments);

// The file that this process runs.
Result<std::string> own_program();

}  // namespace weft::os
