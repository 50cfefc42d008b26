//! The examples in the help of each command: comments, each followed by a command line.

/// Defines the help texts, each with the heading.
macro_rules! examples {
    ($($name:ident: $text:literal;)*) => {
        $(pub const $name: &str = concat!("Examples:", $text);)*
    };
}

examples! {
    PURLIN: "
  # Try changes on files, without a cluster
  purlin plan -f shop
  purlin apply -f shop

  # Look at the Resources of a namespace in a cluster
  purlin get -n shop";

    INIT: "
  # Install what the configuration in the working directory needs
  purlin init

  # Select the newest versions of modules and providers that the constraints allow
  purlin init -upgrade

  # In CI: fail if the lock file does not have the selected versions
  purlin init -f network -lockfile=readonly";

    PROVIDERS: "
  # Show the providers of each module
  purlin providers -f network";

    FMT: "
  # Format the files of a directory and its subdirectories
  purlin fmt -recursive network

  # In CI: show what is not formatted, and exit with 3
  purlin fmt -check -diff -recursive";

    PLAN: "
  # Compare the manifests in a directory with the records in purlin.db
  purlin plan -f shop

  # Save the plan, and apply exactly these changes
  purlin plan -f shop --out shop.plan
  purlin apply shop.plan

  # Show what the controller would do in a namespace
  purlin plan -n shop

  # Show what applying the manifests to a namespace would change
  purlin plan -f shop -n shop

  # Write the comment of a pull request that changes or removes manifests
  purlin plan -f shop -n shop --prune -l app=shop -o markdown";

    APPLY: "
  # Show the plan, ask, and apply it
  purlin apply -f shop

  # Apply without a question, with the records in another file
  purlin apply -f shop --state shop.db --yes

  # Apply only one object and its dependencies
  purlin apply -f shop --target database

  # Apply a saved plan
  purlin apply shop.plan";

    DESTROY: "
  # Show what would be destroyed, ask, and destroy it
  purlin destroy

  # Destroy one object and its dependents
  purlin destroy -f shop --target database";

    DEV: "
  # Apply each change of the manifests in a directory
  purlin dev -f shop

  # Print plain lines, and read only the objects that are due
  purlin dev -f shop --no-progress --refresh due";

    GRAPH: "
  # Show the steps of the next apply in their order
  purlin graph -f shop

  # Draw them with Graphviz
  purlin graph -f shop -o dot > shop.dot";

    EXPLAIN: "
  # Explain an object of the files: its state, its last failure, and its next step
  purlin explain database -f shop

  # Explain one instance of a Resource with forEach
  purlin explain 'server[\"blue\"]' -f shop

  # Explain a Resource in a cluster
  purlin explain database -n shop";

    HISTORY: "
  # Show the last changes of an object of the files
  purlin history database --state purlin.db

  # Show the last changes of one instance in a cluster
  purlin history 'server[\"blue\"]' -n shop";

    UI: "
  # Show the graph of a namespace in a cluster
  purlin ui -n shop

  # Show the graph of the files, while `purlin dev -f shop` applies their changes
  purlin ui -f shop --port 8090";

    GET: "
  # List the objects of the files with their planned actions
  purlin get -f shop

  # List the recorded objects as JSON
  purlin get --state purlin.db -o json

  # Show one Resource in a cluster
  purlin get database -n shop

  # Show the Resources of all namespaces that have a label
  purlin get -A -l team=payments";

    TREE: "
  # Show all objects below the objects that depend on them
  purlin tree -f shop

  # Show the dependencies of one Resource in a cluster
  purlin tree app -n shop";

    IMPORT: "
  # Print a manifest for an existing object
  purlin import site v1/ConfigMap/shop/site --type kubernetes_object -f shop

  # Record an existing object for a manifest
  purlin import database db-1234 -f shop";

    OUTPUT: "
  # Show all outputs of the configuration in the working directory
  purlin output

  # Use one of them in a script
  curl \"$(purlin output -raw url)\"";

    SHOW: "
  # Show a saved plan
  purlin show shop.plan

  # Show all recorded objects
  purlin show --state shop.db";

    CONSOLE: "
  # Try expressions in the directory of a configuration
  purlin console

  # Use the value of one in a script
  echo 'join(\",\", aws_subnet.private[*].id)' | purlin console";

    MIGRATE: "
  # Take the objects of terraform.tfstate over, in the directory of their configuration
  purlin migrate

  # Take over the state of a backend
  tofu state pull | purlin migrate --state -";

    SUSPEND: "
  # Stop changing an object, in the namespace of the current context
  purlin suspend database

  # All objects of another namespace
  purlin suspend --all -n shop";

    RESUME: "
  # Continue to reconcile a suspended Resource
  purlin resume database -n shop

  # Continue with everything
  purlin resume --all -A";

    RECONCILE: "
  # Read and plan a Resource now, and wait until it is ready
  purlin reconcile database -n shop

  # All Resources with a label, for at most ten minutes
  purlin reconcile -l app=shop -n shop --timeout 10m";

    APPROVE: "
  # Show the changes that wait, and approve them
  kubectl get pplan -n shop
  purlin approve database-3f2a91c0de -n shop

  # Without a question, in a script
  purlin approve database-3f2a91c0de -n shop --yes";

    REJECT: "
  # Leave the object as it is until its Resource changes
  purlin reject database-3f2a91c0de -n shop";

    STATE: "
  # List the records in purlin.db
  purlin state list

  # List the records of a namespace in a cluster
  purlin state list -n shop";

    STATE_LIST: "
  # List the records in purlin.db
  purlin state list

  # List the records of a namespace in a cluster, as JSON
  purlin state list -n shop -o json";

    STATE_SHOW: "
  # Show the recorded values of an object
  purlin state show database

  # Show one instance of a Resource with count
  purlin state show 'server[0]' --state shop.db";

    STATE_RM: "
  # Forget an object without destroying it
  purlin state rm database

  # Forget all instances of a Resource in a cluster, without a question
  purlin state rm server -n shop --yes";

    STATE_MV: "
  # Keep the object of a Resource that has a new name
  purlin state mv server app

  # Keep the object of a Resource that has become a family
  purlin state mv server 'server[\"blue\"]'";

    STATE_RECOVER: "
  # List the creates whose outcome is unknown
  purlin state recover

  # One object exists, two do not
  purlin state recover --import database=pg-7 --absent cache --absent 'server[0]'

  # In a cluster: no object was created
  purlin state recover -n shop --all-absent --yes";

    STATE_TAINT: "
  # Replace an object with the next apply
  purlin state taint database

  # Replace one instance in a cluster
  purlin state taint 'server[0]' -n shop";

    STATE_UNTAINT: "
  # Keep an object that was created completely
  purlin state untaint database";

    STATE_UNPROTECT: "
  # Allow the next apply to destroy an object whose manifest no longer exists
  purlin state unprotect database";

    STATE_RESTORE: "
  # Keep the old object of a replacement that was a mistake, and destroy the new one with the next apply
  purlin state list
  purlin state restore database 8e7cdf03";

    STATE_RELEASE: "
  # Allow a Resource to be deleted without destroying its object
  purlin state release database -n shop

  # The same for all Resources in the namespace
  purlin state release --all -n shop";

    STATE_PUSH: "
  # Let the controller manage the objects of the state file
  purlin state push -n shop
  kubectl apply -n shop -f infra

  # Another file and another cluster
  purlin state push --state prod.db --context prod -n shop";

    STATE_EXPORT: "
  # Return to Terraform or OpenTofu
  purlin state export --terraform --out terraform.tfstate

  # Continue an existing Terraform state
  purlin state export --terraform --lineage 4c2f7f0e-8a6b-4f6e-9a55-1f1f6c6ad0f6 --serial 42 --out terraform.tfstate";

    PROVIDER: "
  # Install the providers that the manifests require
  purlin provider install -f shop

  # Show their locked versions
  purlin provider list -f shop";

    PROVIDER_INSTALL: "
  # Install the locked versions
  purlin provider install -f shop

  # Install and lock the newest versions that the manifests allow
  purlin provider install -f shop --upgrade";

    PROVIDER_LIST: "
  # Show the required providers and their locked versions
  purlin provider list -f shop

  # The same as JSON, with the checksums
  purlin provider list -f shop -o json";

    PROVIDER_LOCK: "
  # Lock the checksums for the machines of the team and for the cluster
  purlin provider lock -f shop --platform darwin_arm64 --platform linux_amd64";

    PROVIDER_SCHEMA: "
  # Print the schema of a provider of the manifests
  purlin provider schema random -f shop > random.json";

    PROVIDER_DOCS: "
  # Write a page for each type of a provider
  purlin provider docs random -f shop --out docs/random";

    EXPLAIN_TYPE: "
  # Describe a built-in type
  purlin explain-type kubernetes_object

  # Describe an attribute of a type, with the provider that the manifests require
  purlin explain-type random_pet.length -f shop

  # Write a JSON Schema for an editor
  purlin explain-type random_pet -o json-schema > random_pet.json";

    VALIDATE: "
  # Check the manifests in a directory
  purlin validate -f shop

  # Check a manifest from standard input, with the result as JSON
  purlin validate -f - -o json";

    CRDS: "
  # Install or update the custom resource definitions
  purlin crds | kubectl apply --server-side -f -";

    VERSION: "
  # Print the version as JSON
  purlin version -o json";

    COMPLETION: "
  # Complete commands in this shell
  source <(purlin completion bash)

  # Complete commands in each new zsh
  purlin completion zsh > ~/.zfunc/_purlin";

    CONTROLLER: "
  # Run the controller as your user, for example against a test cluster
  purlin controller --namespace purlin-system --metrics-address off --log-format text

  # Watch only one namespace
  purlin controller --namespace purlin-system --watch-namespace shop";
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Command, CommandFactory as _};

    use crate::cli::args::{PurlinArgs, with_two_dashes};

    fn example_lines(command: &Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        text.lines().map(str::trim).filter(|line| line.contains("purlin ")).map(str::to_owned).collect()
    }

    fn all(command: &Command) -> Vec<Command> {
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        std::iter::once(command.clone()).chain(visible.flat_map(all)).collect()
    }

    /// The words of the `purlin` command in a shell line.
    fn words(line: &str) -> Vec<String> {
        let start = line.find("purlin ").unwrap();
        let words = line[start..].split([' ', ')']).take_while(|word| !["|", ">", "\"", ""].contains(word));
        words.map(|word| word.trim_matches('\'').to_owned()).collect()
    }

    #[test]
    fn every_command_has_examples_that_it_accepts() {
        let mut checked = 0;
        for command in all(&PurlinArgs::command()) {
            let lines = example_lines(&command);
            assert!(!lines.is_empty(), "`{}` has no examples", command.get_name());
            for line in lines.iter().filter(|line| !line.starts_with('#')) {
                let words = words(line).into_iter().map(OsString::from);
                let words = with_two_dashes(words, &PurlinArgs::command());
                let parsed = PurlinArgs::command().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                checked += 1;
            }
        }
        assert!(checked > 60, "only {checked} examples");
    }

    #[test]
    fn no_example_uses_an_option_that_its_command_hides() {
        for command in all(&PurlinArgs::command()) {
            let hidden = command.get_arguments().filter(|arg| arg.is_hide_set());
            let spelled = |arg: &clap::Arg| {
                [arg.get_long().map(|long| format!("--{long}")), arg.get_short().map(|short| format!("-{short}"))]
            };
            let hidden: Vec<String> = hidden.flat_map(spelled).flatten().collect();
            for line in
                example_lines(&command).iter().filter(|line| line.contains(&format!(" {} ", command.get_name())))
            {
                assert!(words(line).iter().all(|word| !hidden.contains(word)), "{line}");
            }
        }
    }
}
