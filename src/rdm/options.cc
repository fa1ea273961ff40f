// SPDX-License-Identifier: BSD-2-Clause
// What can be chosen for an endpoint of reliable datagrams, and what does it count?
#include "rdm/options.h"

namespace weft::rdm {

std::string text_of(const roce::PacketDrops& drops, const Taken& taken) {
  std::string text = roce::text_of(drops);
  const std::string came_to_nothing = roce::text_of({{taken.repeated, "repeated"},
                                                     {taken.early, "too early"},
                                                     {taken.refused, "refused"},
                                                     {taken.unasked, "that answer nothing"},
                                                     {taken.senseless, "without sense"}});
  if (!text.empty() && !came_to_nothing.empty()) text += ", ";
  return text + came_to_nothing;
}

}  // namespace weft::rdm
