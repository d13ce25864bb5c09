/** Sentences of the server. */
import type { ServerTexts } from "../server_texts.ts";

/** German. */
export const serverTexts: ServerTexts = {
  reasons: {
    not_plain_file: "keine gewöhnliche Datei innerhalb des Imports",
    unreadable: "lässt sich nicht lesen",
    not_json: "kein gültiges JSON in UTF-8",
    not_whole_json: "das JSON ist unvollständig",
    not_object: "kein JSON-Objekt",
    not_chat: "kein Chat",
    no_messages: "der Chat hat keine Nachrichten",
    messages_missing: "die Nachrichten fehlen",
    not_jsonl: "keine .jsonl-Datei",
    other_files: "Dateien ohne Chats werden nicht importiert",
    broken_line: "Zeile {line} übersprungen: kein JSON-Objekt",
    broken_lines: "übersprungene Zeilen, die keine JSON-Objekte sind: {count}",
    image_missing: "das Bild „{image}“ fehlt",
    files_not_in_export: "die Dateien sind im Export nicht enthalten",
    artifact_edits: "spätere Änderungen an Artefakten sind nicht eingearbeitet",
    chatgpt_images: "die Bilder sind im Chat-Export nicht enthalten",
    changed_here: "schon vorhanden und seit dem letzten Import geändert: nicht angetastet",
    image_unreadable: "das Bild lässt sich nicht lesen",
    avatar_unreadable: "ohne Bild importiert: Das Bild lässt sich nicht lesen",
    avatar_not_in_file: "ohne Bild importiert: Die Datei enthält es nicht",
    avatar_missing: "ohne Bild importiert: Das Bild fehlt",
    enter_key: "Exporte enthalten keine API-Schlüssel: Geben Sie den Schlüssel erneut ein",
    keys_left_out:
      "API-Schlüssel und Einstellungen werden nicht importiert: Fügen Sie Ihre Dienste unter „Verbindungen“ hinzu",
    service_keys_left_out: "API-Schlüssel werden nicht importiert: Fügen Sie Ihre Dienste unter „Verbindungen“ hinzu",
    character_missing: "ohne Figur importiert: „{card}“ fehlt",
    group_missing: "ohne Figuren importiert: Keine Gruppe enthält diesen Chat",
    members_missing: "einige Figuren der Gruppe fehlen: {cards}",
    persona_image_unused: "keine Persona verwendet dieses Bild",
    backgrounds:
      "Hintergründe werden nicht importiert: in den Optionen eines Chats oder in den Einstellungen auswählen",
    thumbnails: "Vorschaubilder werden bei Bedarf neu erstellt",
    backups: "Sicherungen sind Kopien von Daten, die ohnehin importiert werden",
    themes: "Designs funktionieren nur in SillyTavern",
    presets_of_service: "Presets für einen Dienst, den Parlor nicht unterstützt",
    presets_of_interface: "Presets für eine API, die Parlor nicht unterstützt",
    instruct: "Instruct-Vorlagen werden nicht importiert: Der Modellserver verwendet die Vorlage des Modells",
    context: "Kontextvorlagen werden nicht importiert: Der Modellserver verwendet die Vorlage des Modells",
    sillytavern_own: "wird nur von SillyTavern verwendet",
    agnai_not: "keine Agnai-Datei",
    agnai_scenarios: "Szenarien, die sich während eines Chats ändern, werden nicht unterstützt",
    agnai_templates: "Prompt-Vorlagen werden nicht importiert: Sie verwenden die Vorlagensprache von Agnai",
    agnai_presets: "die Prompts von Presets werden nicht importiert: Sie verwenden die Vorlagensprache von Agnai",
    agnai_trees: "Chat-Verzweigungen werden aus den Nachrichten neu aufgebaut",
    chat_without_character: "ohne Figur importiert: Die Datei enthält sie nicht",
    agnai_overrides: "Felder, die die Figur überschreiben, werden nicht importiert: {fields}",
    risu_not: "keine RisuAI-Datei",
    risu_neither: "weder Karte noch Persona",
    risu_persona: "die Persona lässt sich nicht lesen",
    risu_no_entries: "das Lorebook hat keine Einträge",
    risu_text_chat:
      "als Text oder HTML exportierte Chats haben keine Zeiten und Rollen: Exportieren Sie den Chat als JSON",
    risu_note: "die Notiz wird nicht importiert: Personas haben in Parlor keine Notizen",
    risu_module: "nur das Lorebook des Moduls wird importiert: Skripte und Bilder funktionieren nur in RisuAI",
    risu_module_rest: "Skripte und Bilder des Moduls werden nicht importiert: Sie funktionieren nur in RisuAI",
    risu_scripts: "Skripte werden nicht importiert: Sie funktionieren nur in RisuAI",
    risu_chats_without_character: "Chats ohne ihre Figur und deren Begrüßung importiert: Die Datei enthält sie nicht",
    risu_presets: "die Prompts von Presets werden nicht importiert: Sie verwenden die Vorlagensprache von RisuAI",
    risu_character_missing: "die Datei der Figur fehlt",
    risu_trash: "im Papierkorb von RisuAI",
    empty_chats: "Chats ohne Nachrichten",
    risu_chat_images: "in den RisuAI-Daten fehlende Bilder: {count}",
    risu_cold:
      "die Nachrichten liegen im Langzeitspeicher (Cold Storage) von RisuAI und nicht in dieser Datei: Öffnen Sie den Chat in RisuAI einmal und exportieren Sie ihn erneut",
    risu_memory:
      "das Gedächtnis von RisuAI wird nicht importiert: Parlor schreibt bei Bedarf eine neue Zusammenfassung",
    risu_variables: "Skriptvariablen werden nicht importiert",
    risu_voice: "das Stimmmodell wird nicht importiert: Parlor verwendet Stimmproben eines Sprachservers",
    risu_card_scripts: "die Skripte bleiben für RisuAI in der Karte und haben in Parlor keine Wirkung",
    risu_damaged: "beschädigt: lässt sich nicht entpacken",
    risu_cut_off: "die Datei ist unvollständig",
    agnai_body: "das Sprite bleibt für Agnai in der Karte: Parlor kann es nicht zeichnen",
    expressions_only: "nur Ausdrucksbilder werden importiert, aus einem Ordner, der wie die Datei der Karte heißt",
    files_in_card: "weitere Bilder und Töne sind bei der Figur gespeichert: Ein Export als CHARX enthält sie",
    too_many_files: "die Figur hat zu viele Dateien",
    risu_media: "fehlende Bilder und Töne: {count}",
    risu_module_empty: "das Modul hat kein Lorebook: Skripte und Bilder funktionieren nur in RisuAI",
    risu_no_module: "kein RisuAI-Modul oder eine neuere Version des Formats",
    risu_holds_no_module: "die Datei enthält kein Modul",
    risu_module_damaged: "beschädigt: Das Modul lässt sich nicht lesen",
    risu_no_preset: "kein RisuAI-Preset oder eine neuere Version des Formats",
    risu_holds_no_preset: "die Datei enthält kein Preset",
    risu_preset_damaged: "beschädigt: Das Preset lässt sich nicht entschlüsseln",
    risu_foreign: "nicht von RisuAI oder beschädigt",
  },
  findings: {
    config_ok: { about: "Die Konfiguration ist lesbar" },
    config_bad: {
      about: "{error}",
      remedy: "Berichtigen Sie das; parlor --help und docs/configuration.md sagen, was gemeint ist",
    },
    named_file_missing: {
      about: "{key} nennt „{path}“: {error}",
      remedy: "Legen Sie es dorthin oder berichtigen Sie {key}",
    },
    auth_off: {
      about: "Niemand muss sich anmelden (require_auth = false)",
      remedy: "Setzen Sie require_auth = true; false ist für die Entwicklung",
    },
    open_loopback: {
      about: "Jeder Benutzer und jedes Programm dieses Rechners hat ohne Anmeldung die ganze API, unter {addresses}",
      remedy:
        "Öffnen Sie den Server im Browser als http://localhost und fügen Sie einen Passkey hinzu: Er schließt sie alle",
    },
    open_names: {
      about: "{names}: Wer den Server erreicht, hat dort die ganze API, bis der erste Passkey hinzugefügt ist",
      remedy: 'Fügen Sie dort einen Passkey hinzu, oder setzen Sie pairing = "code"',
    },
    open_patterns: {
      about:
        "{patterns} lässt sich nicht durch einen Passkey schließen: Ein Client kann darunter einen Namen ohne Passkey erfinden",
      remedy: 'Nennen Sie jeden Namen einzeln in allowed_hosts, oder setzen Sie pairing = "code"',
    },
    open_addresses: {
      about: "Wer {addresses} erreicht, braucht nie einen Passkey: Browser machen für eine IP-Adresse keinen",
      remedy:
        'Nehmen Sie einen Namen mit HTTPS, oder setzen Sie pairing = "code" und melden Sie sich dort mit Token an',
    },
    open_plain_names: {
      about: "{names} lässt sich nie durch einen Passkey schließen: Browser machen über HTTP keinen",
      remedy:
        "Setzen Sie tls_cert und tls_key, oder stellen Sie einen HTTPS-Proxy davor und nennen Sie ihn in trusted_proxies",
    },
    proxy_here_without_credentials: {
      about:
        "Einem Proxy auf diesem Rechner wird vertraut, während Anfragen von diesem Rechner keine Anmeldung brauchen",
      remedy:
        "Setzen Sie loopback_auth_bypass = false: Ein Proxy, der seinen Header vergisst, gibt jeden Besucher als Sie aus",
    },
    machine_without_credentials: {
      about: "Jeder Benutzer und jedes Programm dieses Rechners hat die ganze API (loopback_auth_bypass = true)",
      remedy: "Wo andere diesen Rechner benutzen, setzen Sie loopback_auth_bypass = false",
    },
    no_name_allowed: {
      about: "Der Server lauscht auf {host}, aber kein Name darf ihn von anderswo erreichen",
      remedy: "Nennen Sie den Host, unter dem er erreicht wird, in allowed_hosts, oder setzen Sie host = 127.0.0.1",
    },
    exposed_plain: {
      about: "Andere Rechner erreichen {address} womöglich, und zwar unverschlüsselt",
      remedy:
        "Wenn kein Proxy, Container oder keine Firewall dazwischen ist, setzen Sie host = 127.0.0.1 oder tls_cert und tls_key",
    },
    guard_allow: {
      about: "Adressen in Karten und Seiten dürfen zu {addresses} führen (guard_allow)",
      remedy: "Lassen Sie in guard_allow nur, woher eine Karte oder ein Download geholt werden muss",
    },
    reach_ok: { about: "Jede Adresse verlangt eine Anmeldung" },
    no_data_folder: { about: "Es gibt noch keinen Datenordner „{path}“; der erste Start legt ihn an" },
    data_folder_unreadable: {
      about: "„{path}“ kann nicht angesehen werden: {error}",
      remedy: "Führen Sie dies als der Benutzer aus, unter dem der Server läuft",
    },
    open_to_others: {
      about: "Andere können „{path}“ lesen (Modus {mode})",
      remedy:
        'chmod {wanted} "{path}"; machen Sie einen neuen Schlüssel (parlor key rotate), falls andere es gelesen haben',
    },
    other_owner: {
      about: "„{path}“ gehört einem anderen Benutzer",
      remedy: "Führen Sie Parlor als dieser Benutzer aus, oder übergeben Sie den Ordner mit chown",
    },
    modes_ok: { about: "Nur sein Besitzer liest „{path}“" },
    interrupted_restore: {
      about: "Eine Wiederherstellung oder ein Schlüsselwechsel wurde unterbrochen",
      remedy: "Der nächste Start führt das zu Ende oder verwirft es; starten Sie den Server einmal",
    },
    database_unusable: {
      about: "Die Datenbank ist nicht zu gebrauchen: {error}",
      remedy: "Stellen Sie eine Sicherung wieder her (parlor restore FILE --replace), oder legen Sie die Datei zurück",
    },
    no_database: { about: "Es gibt noch keine Datenbank; der erste Start legt sie an" },
    key_unreadable: {
      about: "Die Datenbank wurde nicht angesehen: {error}",
      remedy: "Bringen Sie den Speicherschlüssel in Ordnung und sehen Sie dann noch einmal nach",
    },
    key_missing: {
      about: "Der Speicherschlüssel von „{path}“ fehlt",
      remedy: "Legen Sie ihn zurück: parlor key import FILE, oder setzen Sie storage_key_file",
    },
    key_wrong: {
      about: "Der Speicherschlüssel „{path}“ gehört nicht zu diesen Daten: {error}",
      remedy:
        "Legen Sie den passenden Schlüssel zurück (parlor key import FILE oder storage_key_file); ersetzen Sie keine Daten",
    },
    schema_newer: {
      about: "Die Datenbank hat Schema {version}, und dieses Programm kennt Schemata bis {newest}",
      remedy: "Starten Sie wieder das neuere Programm",
    },
    database_ok: { about: "Die Datenbank ist heil und öffnet sich mit dem Speicherschlüssel (Schema {version})" },
    credentials_damaged: {
      about: "credentials.json mit den Passkeys ist beschädigt, daher bleibt jede Adresse geschlossen",
      remedy:
        "Stellen Sie credentials.json aus einer Sicherung wieder her, oder löschen Sie die Datei und fügen Sie jeden Passkey neu hinzu",
    },
    sealed_damaged: {
      about: "{count} verschlüsselte Dateien sind beschädigt oder fehlen: {paths}",
      remedy: "Holen Sie sie aus einer Sicherung (parlor restore FILE --data-dir ORDNER, dann von dort kopieren)",
    },
    sealed_unknown: {
      about: "Die verschlüsselten Dateien wurden nicht geprüft: {error}",
      remedy: "Führen Sie dies als der Benutzer aus, unter dem der Server läuft",
    },
    sealed_ok: { about: "Alle {count} verschlüsselten Dateien lassen sich öffnen" },
    sealed_ok_partly: {
      about: "{count} verschlüsselte Dateien lassen sich öffnen; parlor doctor prüft auch die übrigen",
    },
    backups_off: {
      about: "Automatische Sicherungen sind ausgeschaltet",
      remedy:
        "Wählen Sie unter Einstellungen > Daten einen Ordner auf einem anderen Datenträger, oder setzen Sie backup_dir",
    },
    backup_none_yet: { about: "Es gibt noch keine Sicherung; der laufende Server macht die erste" },
    backups_gone: {
      about: "Es wurden Sicherungen gemacht, aber „{path}“ enthält keine",
      remedy: "Prüfen Sie, ob der Datenträger von backup_dir eingehängt ist",
    },
    backup_dir_not_mounted: {
      about: "Der Datenträger von „{path}“ ist nicht eingehängt, daher werden keine Sicherungen gemacht",
      remedy: "Hängen Sie ihn ein, oder entfernen Sie backup_dir_must_be_mount",
    },
    backup_dir_unreadable: {
      about: "Die Sicherungen in „{path}“ wurden nicht geprüft: {error}",
      remedy: "Prüfen Sie, ob der Datenträger von backup_dir eingehängt ist und dieser Benutzer ihn lesen darf",
    },
    backup_failed: {
      about: "Die letzte Sicherung ist um {at} fehlgeschlagen: {error}",
      remedy: "Beheben Sie die Ursache, und starten Sie dann eine Sicherung unter Einstellungen, Daten",
    },
    backup_old: {
      about: "Die letzte Sicherung, „{name}“, ist {days} Tage alt",
      remedy: "Starten Sie den Server: Er macht jeden Tag eine. Wenn er läuft, sehen Sie in sein Protokoll",
    },
    backup_unusable: {
      about: "Die letzte Sicherung, „{name}“, lässt sich nicht wiederherstellen: {error}",
      remedy: "Starten Sie eine neue unter Einstellungen, Daten, und prüfen Sie den Datenträger von backup_dir",
    },
    backup_locked: {
      about: "Die letzte Sicherung, „{name}“, wurde nicht geöffnet: Ihre Passphrase ist hier nicht bekannt",
      remedy: "Setzen Sie PARLOR_BACKUP_PASSPHRASE, und prüfen Sie noch einmal",
    },
    backup_ok: { about: "Die letzte Sicherung, „{name}“ (Parlor {version}), lässt sich wiederherstellen" },
    backup_opens: {
      about: "Die letzte Sicherung, „{name}“ (Parlor {version}), lässt sich öffnen; parlor doctor liest sie ganz",
    },
    clock_ok: { about: "Die Uhr geht dem zuletzt Gespeicherten nicht nach" },
    clock_behind: {
      about: "Die Uhr zeigt {now}, und das liegt vor dem zuletzt Gespeicherten",
      remedy: "Stellen Sie die Uhr dieses Rechners, am besten über NTP",
    },
    disk_unknown: {
      about: "Wie viel Platz „{path}“ hat, ist nicht zu sehen: {error}",
      remedy: "Sehen Sie nach, ob sein Datenträger eingehängt ist",
    },
    disk_full: {
      about: "„{path}“ hat {free} GiB frei",
      remedy: "Schaffen Sie Platz: Ist der Datenträger voll, wird nichts mehr gespeichert",
    },
    disk_little: {
      about: "„{path}“ hat {free} GiB frei",
      remedy: "Schaffen Sie Platz vor dem nächsten Modell oder der nächsten Sicherung",
    },
    disk_ok: { about: "„{path}“ hat {free} GiB frei" },
    no_program: {
      about: "{key} nennt „{path}“, und das ist kein Programm",
      remedy: "Berichtigen Sie {key}, oder lassen Sie es weg, dann wird in PATH gesucht",
    },
    program_ok: { about: "{program} ist „{path}“" },
    no_yt_dlp: {
      about: "{program} wurde nicht gefunden",
      remedy: "Installieren Sie es, oder setzen Sie {key}, um Stimmproben von Seiten zu holen",
    },
    no_llama_server: {
      about: "{program} wurde nicht gefunden",
      remedy: "Installieren Sie es, oder setzen Sie {key}, um ein geladenes Modell laufen zu lassen",
    },
    no_tailscaled: {
      about: "{program} wurde nicht gefunden",
      remedy: "Installieren Sie es, oder setzen Sie {key}, um im Tailnet zu sein",
    },
    other_server: {
      about: "Was unter „{url}“ antwortet, ist kein Parlor: Status {status}",
      remedy: "Richten Sie den Proxy oder --url auf Parlor",
    },
    server_ok: { about: "Unter „{url}“ antwortet ein Server" },
    server_unreachable: {
      about: "„{url}“ ist nicht zu erreichen: {error}",
      remedy: "Starten Sie den Server, oder berichtigen Sie Proxy, Namen und Zertifikat",
    },
    server_off: {
      about: "Unter „{url}“ läuft kein Server, daher ist der Zustand von Modell, Tailnet-Knoten und Aufgaben unbekannt",
      remedy: "Starten Sie ihn, und führen Sie parlor doctor noch einmal aus",
    },
    clocks_differ: {
      about: "Die Uhren hier und dort gehen {seconds} s auseinander",
      remedy: "Stellen Sie beide über NTP",
    },
    host_refused: {
      about: "Der Server lässt sich unter „{url}“ nicht erreichen",
      remedy: "Nennen Sie diesen Host in allowed_hosts",
    },
    proxy_untrusted: {
      about: "Vor dem Server steht ein Proxy, dem nicht vertraut wird",
      remedy: "Nennen Sie seine Adresse in trusted_proxies",
    },
    no_passkeys: {
      about: "Kein Browser macht unter „{url}“ einen Passkey",
      remedy: "Erreichen Sie ihn unter einem Namen mit HTTPS",
    },
    health_untold: { about: "Der Server sagte nicht, wie es seinem Modell geht: Status {status}" },
    tailnet_untold: { about: "Der Server sagte nicht, wie es seinem Tailnet-Knoten geht: Status {status}" },
    tailnet_ok: { about: "Der Tailnet-Knoten läuft unter {url}" },
    tailnet_down: {
      about: "Der Tailnet-Knoten ist eingeschaltet, läuft aber nicht (Zustand {state}): {error}",
      remedy: "Sehen Sie unter Einstellungen, Zugriff nach",
    },
    sign_ins_refused: {
      about: "Abgelehnte Anmeldungen in den letzten 24 Stunden: {count}. Die Adressen stehen im Log",
    },
    sign_ins_refused_often: {
      about: "Abgelehnte Anmeldungen in den letzten 24 Stunden: {count}. Vielleicht probiert jemand Zugangsdaten aus",
      remedy: "Sehen Sie die Adressen im Log nach, und sperren Sie sie, zum Beispiel mit fail2ban",
    },
    calls_untold: { about: "Der Server nannte seine Verbindungen nicht: Status {status}" },
    call_failed: {
      about: "Der letzte Aufruf der Verbindung „{name}“ ({id}) ist fehlgeschlagen: {error}",
      remedy: "Starten Sie ihren Server, oder berichtigen Sie die Verbindung unter Einstellungen, Verbindungen",
    },
    tool_servers_untold: { about: "Der Server nannte seine Werkzeug-Server nicht: Status {status}" },
    tool_server_ok: { about: "Der Werkzeug-Server „{name}“ ist bereit, Werkzeuge: {count}" },
    tool_server_failed: {
      about: "Der Werkzeug-Server „{name}“ ist nicht verfügbar: {error}",
      remedy: "Testen Sie ihn unter Einstellungen > Werkzeuge oder schalten Sie ihn dort aus",
    },
    jobs_untold: { about: "Der Server nannte seine Aufgaben nicht: Status {status}" },
    jobs_failed: {
      about: "Fehlgeschlagene Aufgaben in den letzten 24 Stunden: {count}. Die letzte ist „{title}“: {error}",
      remedy: "Sehen Sie unter Aktivität nach",
    },
    no_connection: {
      about: "Keine Verbindung zu einem Modell ist in Gebrauch",
      remedy: "Wählen Sie eine unter Einstellungen, Verbindungen",
    },
    model_ok: { about: "Das Modell von „{name}“ antwortet in {ms} ms" },
    model_silent: {
      about: "Das Modell von „{name}“ antwortet nicht: {error}",
      remedy: "Starten Sie seinen Server, oder berichtigen Sie die Verbindung unter Einstellungen, Verbindungen",
    },
  },
};
