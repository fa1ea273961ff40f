// SPDX-License-Identifier: BSD-2-Clause
// How do the two processes of a verbs test tell each other what they have?
#pragma once

#include <cstddef>
#include <string>

// A TCP connection to the other process. A failure ends the process with a message.
class Exchange {
 public:
  // The server waits for one client at that port; the client goes to `host`.
  static Exchange serve(unsigned short port);
  static Exchange reach(const std::string& host, unsigned short port);
  ~Exchange();
  Exchange(Exchange&& other) noexcept;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Sends an object and receives the other's.
  template <class Object>
  Object swap(const Object& mine) {
    Object theirs;
    send(&mine, sizeof mine);
    receive(&theirs, sizeof theirs);
    return theirs;
  }
  // Returns when the other process has come to the same place.
  void meet() { swap('x'); }

 private:
  explicit Exchange(int fd) : fd_(fd) {}
  void send(const void* bytes, std::size_t length) const;
  void receive(void* bytes, std::size_t length) const;

  int fd_;
};

// Ends the process with a message, and what errno says.
[[noreturn]] void fail(const std::string& what);
