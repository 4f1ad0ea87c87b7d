/*
 * C++ as it is shipped: optimised, without frame pointers, much of it inlined; containers,
 * virtual calls, exceptions.
 */
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct shape {
	virtual ~shape() {}
	virtual std::string name(int n) const = 0;
};

struct circle : shape {
	std::string name(int n) const override
	{
		return std::string(static_cast<size_t>(n % 53 + 20), 'c');
	}
};

struct square : shape {
	std::string name(int n) const override
	{
		if (n % 7 == 0)
			throw std::runtime_error(std::string(100, 'e'));
		return std::string(static_cast<size_t>(n % 31 + 20), 's');
	}
};

static std::map<std::string, std::vector<int>> index_of(int n)
{
	std::map<std::string, std::vector<int>> ret;
	std::vector<std::unique_ptr<shape>> shapes;

	for (int i = 0; i < n; i++) {
		if (i % 2)
			shapes.emplace_back(new circle);
		else
			shapes.emplace_back(new square);
	}
	for (int i = 0; i < n; i++) {
		try {
			ret[shapes[static_cast<size_t>(i)]->name(i)].push_back(i);
		} catch (const std::exception &e) {
			ret[e.what()].push_back(-i);
		}
	}
	return ret;
}

int main()
{
	size_t sum = 0;

	for (int n = 1; n < 24; n++) {
		auto index = index_of(n);
		std::vector<std::string> keys;

		for (const auto &pair : index)
			keys.push_back(pair.first);
		std::sort(keys.begin(), keys.end(),
			  [](const std::string &a, const std::string &b) { return a + "x" > b + "x"; });
		sum += keys.size();
	}
	return sum == 0;
}
