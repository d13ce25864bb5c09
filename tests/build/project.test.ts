import { expect, test } from "vitest";
import values from "../../project.json" with { type: "json" };
import { formatGithubProject } from "../../build/project.ts";
import { parseProject, PROJECT } from "../../services/platform/project.ts";

const HOME = {
  home: "https://github.com/Some-One/parlor",
  image: "ghcr.io/some-one/parlor",
  releases_url: "https://api.github.com/repos/Some-One/parlor/releases/latest",
};

test("a build has the addresses in project.json, or none", () => {
  const { home, image, releases_url: releasesUrl } = values;
  expect(PROJECT).toEqual({ home, image, releasesUrl });
  const none = { home: "", image: "", releasesUrl: "" };
  expect(parseProject({ home: "", image: "", releases_url: "" })).toEqual(none);
});

test("fills in the addresses of a repository on GitHub", () => {
  const written = JSON.parse(formatGithubProject("Some-One/parlor"));
  expect(written).toEqual(HOME);
  const { home, image, releases_url: releasesUrl } = HOME;
  expect(parseProject(written)).toEqual({ home, image, releasesUrl });
  for (const wrong of ["", "parlor", "https://github.com/a/b", "a/b/c"]) {
    expect(() => formatGithubProject(wrong), wrong).toThrow("isn't owner/name");
  }
});

test.each([
  ["only some of them", { image: "" }, '"image"'],
  ["a page without https", { home: "http://example.org/parlor" }, '"home"'],
  ["a slash at the end", { home: "https://example.org/parlor/" }, '"home"'],
  ["an image with a tag", { image: "ghcr.io/some-one/parlor:1.2.3" }, '"image"'],
  ["an image in upper case", { image: "ghcr.io/Some-One/parlor" }, '"image"'],
  ["no releases", { releases_url: "" }, '"releases_url"'],
])("refuses a project.json with %s", (_case, change, name) => {
  expect(() => parseProject({ ...HOME, ...change })).toThrow(name);
});
