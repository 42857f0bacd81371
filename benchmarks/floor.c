/* The floor of a lossless edit: find where the source of cell k stands in a notebook.
 * Strings are skipped with memchr, everything else byte by byte; nothing is validated. */
#include <stddef.h>
#include <string.h>

typedef const char *place;

static place skip_space(place at, place end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) at++;
  return at;
}

static place skip_string(place at, place end) {
  at++;
  for (;;) {
    place quote = memchr(at, '"', end - at);
    if (!quote) return NULL;
    size_t backslashes = 0;
    for (place back = quote; back > at && back[-1] == '\\'; back--) backslashes++;
    if (backslashes % 2 == 0) return quote + 1;
    at = quote + 1;
  }
}

static place skip_value(place at, place end) {
  int depth = 0;
  while (at < end) {
    if (*at == '"') {
      if (!(at = skip_string(at, end))) return NULL;
      if (!depth) return at;
      continue;
    }
    if (*at == '{' || *at == '[') depth++;
    if (*at == '}' || *at == ']') {
      if (!depth) return at;
      if (!--depth) return at + 1;
    }
    if (*at == ',' && !depth) return at;
    at++;
  }
  return at;
}

static place find_member(place object, place end, const char *key) {
  size_t length = strlen(key);
  place at = skip_space(object + 1, end);
  while (at < end && *at == '"') {
    place name = at + 1, after = skip_string(at, end);
    if (!after) return NULL;
    at = skip_space(skip_space(after, end) + 1, end);
    if ((size_t)(after - 1 - name) == length && !memcmp(name, key, length)) return at;
    if (!(at = skip_value(at, end))) return NULL;
    at = skip_space(at, end);
    if (at < end && *at == ',') at = skip_space(at + 1, end);
  }
  return NULL;
}

int find_source(const char *data, size_t size, int cell, size_t *span) {
  place end = data + size, at = find_member(skip_space(data, end), end, "cells");
  if (!at) return 1;
  at = skip_space(at + 1, end);
  for (; at < end && *at != ']'; cell--) {
    if (!cell) {
      place source = find_member(at, end, "source");
      if (!source) return 2;
      span[0] = source - data;
      span[1] = skip_value(source, end) - data;
      return 0;
    }
    if (!(at = skip_value(at, end))) return 3;
    at = skip_space(at, end);
    if (at < end && *at == ',') at = skip_space(at + 1, end);
  }
  return 4;
}
