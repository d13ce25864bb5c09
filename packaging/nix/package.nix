# The executable of a release, with the loader and the libraries of nixpkgs.
{ pkgs, release, name, sha256 }:
pkgs.stdenv.mkDerivation {
  pname = "parlor";
  inherit (release) version;
  src = pkgs.fetchurl {
    url = "${release.home}/releases/download/v${release.version}/${name}";
    inherit sha256;
  };
  nativeBuildInputs = [ pkgs.patchelf ];
  dontUnpack = true;
  # They would lose the program, which is behind the end of the ELF file.
  dontStrip = true;
  dontPatchELF = true;
  installPhase = ''
    install -D -m 0755 $src $out/bin/parlor
    bash ${./set_interpreter.sh} $out/bin/parlor "$(cat $NIX_CC/nix-support/dynamic-linker)" ${pkgs.stdenv.cc.cc.lib}/lib
  '';
  meta = {
    description = "Self-hosted chat for language models";
    homepage = release.home;
    license = pkgs.lib.licenses.mit;
    mainProgram = "parlor";
    platforms = builtins.attrNames release.files;
  };
}
