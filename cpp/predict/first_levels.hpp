// The first levels of a tree for sixteen rows at a time: nearly all rows go through them, so comparing each row
// with each of their nodes costs less than walking.
#pragma once

#include <cstddef>
#include <cstdint>

#include "predict/open_tree.hpp"

namespace oldgrowth {

// Whether this machine supports it.
bool has_first_levels();

// The node that each of n rows has reached after the first levels, or its leaf before that. No value may be NaN.
// The output needs room for kBlock rows.
void skip_first_levels(const OpenNode* open, const float* columns, std::size_t n, std::uint32_t* at);

}  // namespace oldgrowth
