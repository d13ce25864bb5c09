{
  description = "Parlor: self-hosted chat for language models";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      release = import ./release.nix;
      forEachSystem = nixpkgs.lib.genAttrs (builtins.attrNames release.files);
    in
    {
      packages = forEachSystem (system: {
        default = import ./package.nix {
          inherit release;
          inherit (release.files.${system}) name sha256;
          pkgs = nixpkgs.legacyPackages.${system};
        };
      });
      nixosModules.default = import ./module.nix self;
    };
}
