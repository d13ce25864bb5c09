# NixOS: services.parlor.enable = true;
self:
{ config, lib, pkgs, ... }:
let
  cfg = config.services.parlor;
  # As Parlor reads environment variables.
  format = value:
    if builtins.isList value then builtins.concatStringsSep "," (map format value)
    else if builtins.isBool value then (if value then "true" else "false")
    else toString value;
  settings = cfg.settings // { inherit (cfg) port; data_dir = "/var/lib/parlor"; };
in
{
  options.services.parlor = {
    enable = lib.mkOption {
      type = lib.types.bool;
      default = false;
      description = "Whether to run Parlor, a self-hosted chat for language models.";
    };
    package = lib.mkOption {
      type = lib.types.package;
      default = self.packages.${pkgs.stdenv.hostPlatform.system}.default;
      defaultText = "the package of the flake";
      description = "The package with the program.";
    };
    port = lib.mkOption {
      type = lib.types.port;
      default = 8787;
      description = "Port on which Parlor listens.";
    };
    settings = lib.mkOption {
      type = lib.types.attrsOf lib.types.anything;
      default = { };
      example = { allowed_hosts = [ "chat.example.org" ]; trusted_proxies = [ "127.0.0.1" ]; };
      description = "Settings of config.toml, by their names there.";
    };
  };

  config = lib.mkIf cfg.enable {
    systemd.services.parlor = {
      description = "Parlor";
      after = [ "network-online.target" ];
      wants = [ "network-online.target" ];
      wantedBy = [ "multi-user.target" ];
      environment = builtins.listToAttrs (map (name: {
        name = "PARLOR_${lib.toUpper name}";
        value = format settings.${name};
      }) (builtins.attrNames settings));
      # The same as in docs/guide/install.md.
      serviceConfig = {
        ExecStart = "${cfg.package}/bin/parlor";
        DynamicUser = true;
        StateDirectory = "parlor";
        StateDirectoryMode = "0700";
        Restart = "on-failure";
        TimeoutStopSec = 15;
        CapabilityBoundingSet = "";
        LockPersonality = true;
        NoNewPrivileges = true;
        PrivateDevices = true;
        PrivateTmp = true;
        ProcSubset = "pid";
        ProtectClock = true;
        ProtectControlGroups = true;
        ProtectHome = true;
        ProtectHostname = true;
        ProtectKernelLogs = true;
        ProtectKernelModules = true;
        ProtectKernelTunables = true;
        ProtectProc = "invisible";
        ProtectSystem = "strict";
        RemoveIPC = true;
        RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX AF_NETLINK";
        RestrictNamespaces = true;
        RestrictRealtime = true;
        RestrictSUIDSGID = true;
        SystemCallArchitectures = "native";
        SystemCallErrorNumber = "EPERM";
        SystemCallFilter = "@system-service @pkey";
        UMask = "0077";
      };
    };
  };
}
