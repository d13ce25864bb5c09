# The release that the package downloads.
{
  version = "{{version}}";
  home = "{{home}}";
  files = {
    x86_64-linux = {
      name = "parlor-linux-x64";
      sha256 = "{{sha256 parlor-linux-x64}}";
    };
    aarch64-linux = {
      name = "parlor-linux-arm64";
      sha256 = "{{sha256 parlor-linux-arm64}}";
    };
  };
}
