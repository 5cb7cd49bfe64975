//! Enums whose variants have names.

/// Defines an enum with the name of each variant: the list `ALL` of the variants, the function `name`, and `Display`,
/// which writes the name.
///
/// ```
/// unisono_base::named! {
///     /// A side.
///     #[derive(Clone, Copy, PartialEq, Debug)]
///     pub enum Side {
///         Left = "left",
///         Right = "right",
///     }
/// }
/// assert_eq!(Side::ALL.map(Side::name), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! named {
    (
        $(#[$of_type:meta])*
        $vis:vis enum $Type:ident { $($(#[$of_variant:meta])* $Variant:ident = $name:literal,)* }
    ) => {
        $(#[$of_type])*
        $vis enum $Type {
            $($(#[$of_variant])* $Variant,)*
        }

        // Some of these lists are not used.
        #[allow(dead_code)]
        impl $Type {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$Variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)*
                }
            }
        }

        impl ::std::fmt::Display for $Type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
