// All split criteria. To add one, write a header in this directory and add an entry to `Criteria`: numbers, dispatch
// and the names in Python follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "grow/criteria/entropy.hpp"
#include "grow/criteria/gini.hpp"
#include "grow/criteria/node_stats.hpp"
#include "grow/criteria/poisson.hpp"
#include "grow/criteria/squared_error.hpp"

namespace oldgrowth {

using Criteria = std::tuple<Gini, Entropy, SquaredError, PoissonDeviance>;

// The index of a criterion in the list.
enum class Criterion : std::uint8_t {};

template <class C>
inline constexpr bool kForClasses = C::template Stats<false>::kClassification;

template <NodeStats Stats>
struct StatsType {};

// Calls use(C{}) with the criterion at that place.
template <std::size_t place = 0, class Use>
decltype(auto) visit_criterion(Criterion criterion, const Use& use) {
  using C = std::tuple_element_t<place, Criteria>;
  if constexpr (place + 1 < std::tuple_size_v<Criteria>)
    if (static_cast<std::size_t>(criterion) != place) return visit_criterion<place + 1>(criterion, use);
  return use(C{});
}

// Calls use(StatsType<Stats>()) with the criterion's statistics, in counting mode or not.
template <class Use>
decltype(auto) visit_stats(Criterion criterion, bool counts, const Use& use) {
  return visit_criterion(criterion, [&]<class C>(C) {
    return counts ? use(StatsType<typename C::template Stats<true>>())
                  : use(StatsType<typename C::template Stats<false>>());
  });
}

template <class C>
inline constexpr Criterion kCriterion = []<std::size_t... place>(std::index_sequence<place...>) {
  return static_cast<Criterion>(((std::is_same_v<C, std::tuple_element_t<place, Criteria>> ? place : 0) + ...));
}(std::make_index_sequence<std::tuple_size_v<Criteria>>());

// Calls use(criterion, C{}) for each in turn.
template <class Use>
void for_each_criterion(const Use& use) {
  std::apply([&](auto... c) { (use(kCriterion<decltype(c)>, c), ...); }, Criteria{});
}

// The names of the criteria for classification, or for regression.
inline std::vector<std::string> criterion_names(bool classification) {
  std::vector<std::string> names;
  for_each_criterion([&]<class C>(Criterion, C) {
    if (kForClasses<C> == classification) names.insert(names.end(), std::begin(C::kNames), std::end(C::kNames));
  });
  return names;
}

inline std::optional<Criterion> find_criterion(std::string_view name) {
  std::optional<Criterion> found;
  for_each_criterion([&]<class C>(Criterion criterion, C) {
    for (const std::string_view known : C::kNames)
      if (known == name) found = criterion;
  });
  return found;
}

}  // namespace oldgrowth
